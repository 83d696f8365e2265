"""The real command in a process of its own, and the sandboxes that it may leave."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import docker
import docker.errors
import pytest

from harbor_backend.places import labels

ROOT = Path(__file__).parents[2]
DATASET = ROOT / "tasks" / "dataset"
COMMAND = [sys.executable, "-m", "osmosis_ai.cli"]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which is one JSON document and nothing else."""
        return json.loads(self.out)


class Osmosis(Protocol):
    def __call__(
        self, *arguments: str | Path, cwd: Path = ..., env: dict[str, str] | None = ...
    ) -> Done: ...


def environment(results: Path) -> dict[str, str]:
    """The environment of a command that must find this source tree from any directory."""
    return {
        **{name: value for name, value in os.environ.items() if name != "DOCKER_HOST"},
        "PYTHONPATH": str(ROOT),
        "_OSMOSIS_ROLLOUT_ARTIFACT_ROOT": str(results),
    }


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Where rollouts write in this test."""
    return tmp_path / "results"


@pytest.fixture
def osmosis(results: Path) -> Osmosis:
    """Runs ``osmosis`` to its end."""

    def run(*arguments: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> Done:
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            cwd=cwd,
            env={**environment(results), **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def docker_engine() -> Iterator[Any]:
    """The engine, through a client that the code under test does not use for sandboxes."""
    client = docker.from_env()
    try:
        client.ping()
    except (docker.errors.DockerException, OSError) as error:
        pytest.fail(f"these tests need a running Docker engine (`make setup`): {error}")
    yield client
    client.close()


def sandboxes_of(engine: Any, run: str) -> list[Any]:
    """The containers of one run, whose rollout ids end in ``run``."""
    found = engine.containers.list(all=True, ignore_removed=True, filters={"label": labels.SANDBOX})
    return [c for c in found if c.labels[labels.ROLLOUT].endswith(run)]


def run_of(document: dict[str, Any]) -> str:
    """The part of the rollout ids that all trials of one run share."""
    return str(document["tasks"][0]["trials"][0]["rollout_id"].rpartition("-")[2])
