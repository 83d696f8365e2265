"""Runtimes are built once per test run; containers come from images without Python."""

import io
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest

from harbor_backend.program.runtime import MOUNT, PYTHON, Runtime, build_runtime
from osmosis_ai.packaging import EntryPoints, build_bundle

PROJECTS = Path(__file__).parents[3] / "projects"
BUSYBOX = "osmosis-test-busybox:latest"

type Run = Callable[..., str]


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def bundle(cache_dir: Path) -> Path:
    entry_points = EntryPoints(agent="main:DoublingWorkflow", grader="main:DoublingGrader")
    return build_bundle(
        PROJECTS / "flat", entry_points=entry_points, bundles_dir=cache_dir / "bundles"
    )


@pytest.fixture(scope="session")
def runtime(bundle: Path, cache_dir: Path) -> Iterator[Runtime]:
    with build_runtime(bundle, cache_dir=cache_dir) as built:
        yield built


@pytest.fixture(scope="session")
def engine() -> Iterator[Any]:
    client = docker.from_env()
    try:
        client.ping()
    except (docker.errors.DockerException, OSError) as error:
        pytest.fail(f"these tests need a running Docker engine: {error}")
    yield client
    client.close()


@pytest.fixture(scope="session")
def busybox(engine: Any) -> Iterator[str]:
    """An image that holds a static busybox and an empty /tmp, and nothing else."""
    program = shutil.which("busybox")
    if program is None or "interpreter" in _file_kind(Path(program)):
        pytest.fail("these tests need a static busybox: install the package busybox-static")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(Path(program).resolve(), "bin/busybox")
        link = tarfile.TarInfo("bin/sh")
        link.type, link.linkname = tarfile.SYMTYPE, "busybox"
        tar.addfile(link)
    name, _, tag = BUSYBOX.partition(":")
    engine.api.import_image_from_data(buffer.getvalue(), repository=name, tag=tag)
    yield BUSYBOX
    engine.images.remove(BUSYBOX, force=True)


def _file_kind(program: Path) -> str:
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    return "static" if listed.returncode else "interpreter"


@pytest.fixture(params=["busybox", "python:3.12-slim"])
def image(request: pytest.FixtureRequest, engine: Any) -> str:
    if request.param == "busybox":
        return str(request.getfixturevalue("busybox"))
    try:
        engine.images.get(request.param)
    except docker.errors.ImageNotFound:
        pytest.fail(f"the image {request.param} is missing: build the base image first")
    return str(request.param)


@pytest.fixture
def run(engine: Any) -> Run:
    """Runs Python code in a sealed container on a tree, and returns what it printed."""

    def run_in_container(image: str, tree: Path, code: str, **options: Any) -> str:
        output = engine.containers.run(
            image,
            [str(PYTHON), "-c", code],
            volumes={str(tree): {"bind": str(MOUNT), "mode": "ro"}},
            network_mode="none",
            user="1000",
            cap_drop=["ALL"],
            read_only=True,
            remove=True,
            stderr=True,
            **options,
        )
        return str(output.decode())

    return run_in_container
