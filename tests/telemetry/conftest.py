"""A collector, a policy, and environments that name them or nobody."""

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.gateway.model_server import ModelServer, model_server
from tests.telemetry.collector import Collector, serve_collector


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of OpenTelemetry's from the machine."""
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def artifact_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where rollouts write in this test, instead of the home directory."""
    root = tmp_path / "rollouts"
    monkeypatch.setenv("_OSMOSIS_ROLLOUT_ARTIFACT_ROOT", str(root))
    return root


@pytest.fixture
async def collector(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Collector]:
    """A running collector that the environment names."""
    async with serve_collector() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        yield running


@pytest.fixture
async def model(anyio_backend: str) -> AsyncIterator[ModelServer]:
    """A running model server."""
    async with model_server() as running:
        yield running


@pytest.fixture
def bare_root_logger() -> Iterator[Callable[[], logging.Logger]]:
    """Takes the root logger's handlers away, as it is when a process starts.

    A function, because pytest adds its own after fixtures are made.
    """
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def bare() -> logging.Logger:
        root.handlers.clear()
        return root

    yield bare
    root.handlers[:] = handlers
    root.setLevel(level)
