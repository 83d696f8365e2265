"""Fixtures of all tests that run containers of ours, and the proof that none of them stays."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest

from harbor_backend.places import labels
from harbor_backend.places.instance import instance_id
from harbor_backend.program.runtime import Runtime, build_runtime
from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV
from sandbox_images import BASE_IMAGE


@pytest.fixture(scope="session")
def engine() -> Iterator[Any]:
    """The engine, through a client that the code under test does not use."""
    client = docker.from_env()
    try:
        client.ping()
        client.images.get(BASE_IMAGE)
    except (docker.errors.DockerException, OSError) as error:
        pytest.fail(f"these tests need a running engine and {BASE_IMAGE} (`make setup`): {error}")
    yield client
    client.close()


@pytest.fixture(scope="session")
def sdk_runtime() -> Iterator[Runtime]:
    """A runtime that holds the SDK and no bundle."""
    with build_runtime(None) as built:
        yield built


@pytest.fixture(autouse=True, scope="session")
def private_temp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A temporary directory for this run alone, so that what stays in it is ours.

    Its path is short, as a unix socket's has to be.
    """
    tmp_path_factory.getbasetemp()  # made in the ordinary place, before it is moved
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="oh-") as path:
        patch.setattr(tempfile, "tempdir", path)
        yield Path(path)


def channel_dirs() -> set[str]:
    """Directories of sockets that sandboxes of this process have at the moment."""
    parent = Path(tempfile.gettempdir(), f"osmosis-{os.getuid()}")
    return {path.name for path in parent.glob("s-*")}


def work_dirs() -> list[str]:
    """Directories of trials and phases that this process has at the moment."""
    prefixes = ("osmosis-harbor-", "osmosis-phase-")
    return [name for name in os.listdir(tempfile.gettempdir()) if name.startswith(prefixes)]


def own_containers(engine: Any) -> list[str]:
    """Names of containers that this process made and that still exist."""
    mine = {"label": f"{labels.INSTANCE}={instance_id()}"}
    return [
        container.name
        for container in engine.containers.list(all=True, filters=mine, ignore_removed=True)
    ]


@pytest.fixture(autouse=True, scope="module")
def nothing_left_behind(request: pytest.FixtureRequest, private_temp: Path) -> Iterator[None]:
    """Fails a module whose tests leave a container, a socket or a trial of this process."""
    engine = request.getfixturevalue("engine") if _uses_docker(request) else None
    yield
    assert engine is None or own_containers(engine) == []
    assert channel_dirs() == set()
    assert work_dirs() == []


def _uses_docker(request: pytest.FixtureRequest) -> bool:
    marks = getattr(request.module, "pytestmark", [])
    return any(mark.name == "docker" for mark in (marks if isinstance(marks, list) else [marks]))


@pytest.fixture
def artifact_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where rollouts write in this test, instead of the home directory."""
    root = tmp_path / "rollouts"
    monkeypatch.setenv(ARTIFACT_ROOT_ENV, str(root))
    return root
