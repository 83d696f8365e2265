"""Sandboxes made through Harbor's own interface, with and without a supervisor inside."""

import io
import shutil
import tarfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from harbor_backend.places.docker.environment import DockerEnvironment
from harbor_backend.program.runtime import Runtime
from sandbox_images import BASE_IMAGE

BUSYBOX = "osmosis-test-shell-only:latest"

type Make = Callable[..., DockerEnvironment]


@pytest.fixture(params=[True, False], ids=["supervised", "engine-exec"])
def supervise(request: pytest.FixtureRequest) -> bool:
    """Which of the two ways into a container a test takes."""
    return bool(request.param)


@pytest.fixture
def definition(tmp_path: Path) -> Callable[..., Path]:
    """Writes an environment directory with this Dockerfile."""

    def write(dockerfile: str = f"FROM {BASE_IMAGE}\n", **files: str) -> Path:
        directory = tmp_path / f"environment-{uuid.uuid4().hex[:6]}"
        directory.mkdir()
        (directory / "Dockerfile").write_text(dockerfile)
        for name, text in files.items():
            (directory / name.replace("__", ".")).write_text(text)
        return directory

    return write


@pytest.fixture
async def make(
    anyio_backend: str,
    engine: Any,
    sdk_runtime: Runtime,
    tmp_path: Path,
    definition: Callable[..., Path],
) -> AsyncIterator[Make]:
    """Makes environments that are stopped at the end of the test, started or not."""
    made: list[DockerEnvironment] = []

    def build(
        dockerfile: str = f"FROM {BASE_IMAGE}\n",
        *,
        supervise: bool = True,
        image: str | None = None,
        directory: Path | None = None,
        task: dict[str, Any] | None = None,
        network: NetworkMode = NetworkMode.NO_NETWORK,
        **options: Any,
    ) -> DockerEnvironment:
        trial_paths = TrialPaths(trial_dir=tmp_path / f"trial-{len(made)}")
        trial_paths.mkdir()  # type: ignore[no-untyped-call]
        environment = DockerEnvironment(
            environment_dir=directory or definition(dockerfile),
            environment_name="test",
            session_id=f"test-{len(made)}__env",
            trial_paths=trial_paths,
            task_env_config=EnvironmentConfig(docker_image=image, **(task or {})),
            network_policy=NetworkPolicy(network_mode=network),
            runtime_dir=str(sdk_runtime.path),
            supervise=supervise,
            **options,
        )
        made.append(environment)
        return environment

    yield build
    for environment in made:
        await environment.stop(delete=True)


@pytest.fixture
async def sandbox(make: Make, supervise: bool) -> DockerEnvironment:
    """A started sandbox of the base image, without a network."""
    environment = make(image=BASE_IMAGE, supervise=supervise)
    await environment.start(force_build=False)
    assert environment.supervised is supervise
    return environment


@pytest.fixture(scope="session")
def shell_only(engine: Any) -> Iterator[str]:
    """An image that holds a static busybox and nothing else."""
    program = shutil.which("busybox")
    if program is None:
        pytest.fail("these tests need a static busybox: install the package busybox-static")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(Path(program).resolve(), "bin/busybox")
        for name in ("sh", "cat", "mkdir", "chmod", "sleep", "id", "grep", "kill", "readlink"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        for name in ("tmp", "proc", "dev"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o777
            tar.addfile(folder)
    name, _, tag = BUSYBOX.partition(":")
    engine.api.import_image_from_data(buffer.getvalue(), repository=name, tag=tag)
    yield BUSYBOX
    engine.images.remove(BUSYBOX, force=True)
