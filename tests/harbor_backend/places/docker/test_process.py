"""A command is the same process here as in Harbor's own Docker environment."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from harbor.environments.base import BaseEnvironment
from harbor.environments.docker.docker import DockerEnvironment as HarborsDockerEnvironment
from harbor.models.task.config import EnvironmentConfig, NetworkMode
from harbor.models.trial.paths import TrialPaths

from sandbox_images import BASE_IMAGE
from tests.harbor_backend.places.docker.conftest import Make

pytestmark = pytest.mark.docker

DOCKERFILE = f"""FROM {BASE_IMAGE}
RUN groupadd -g 2000 team && useradd -u 1500 -m -g team worker && mkdir -m 700 /closed
ENV OF_THE_IMAGE="a b" PATH=/opt/own/bin:/usr/local/bin:/usr/bin:/bin
WORKDIR /closed
"""
LOOKS = {
    "environment": "env | grep -v ^HOSTNAME= | sort",
    "signals": "grep '^Sig[BIC]' /proc/self/status",
    "rights": "grep -E '^(Groups|NoNewPrivs|Seccomp:|Uid|Gid)' /proc/self/status",
    "limits": "ulimit -a",
    "files": "umask; ls /proc/self/fd; pwd; [ -t 0 ] || cat",
    "session": "set -- $(sed 's/.*) //' /proc/$$/stat); echo $(($3 - $$)) $(($4 - $$)) $5",
    "of a Python": "python3 -c 'import signal; print(signal.getsignal(signal.SIGHUP))'; locale",
}
WHO = {
    "root": ("", None),
    "a user": ("", "worker"),
    "a number": ("", "1500"),
    "a group": ("", "1500:0"),
    "nobody that is known": ("", 4321),
    "the image's": ("USER worker\n", None),
    "a home for all": ("ENV HOME=/srv\n", "worker"),
}
TASK = {"OF_THE_TASK": "c d", "LANG": "C.UTF-8"}


SEPARATOR = "-- of the next look --\n"


@pytest.fixture
async def harbors(
    anyio_backend: str, tmp_path: Path
) -> AsyncIterator[Callable[[Path], BaseEnvironment]]:
    """Makes Harbor's own environments."""
    made: list[BaseEnvironment] = []

    def make(directory: Path) -> BaseEnvironment:
        paths = TrialPaths(trial_dir=tmp_path / f"harbors-{len(made)}")
        paths.mkdir()  # type: ignore[no-untyped-call]
        overlay = paths.trial_dir / "overlay.yaml"
        overlay.write_text("services: {main: {stop_grace_period: 0s}}")
        environment = HarborsDockerEnvironment(
            environment_dir=directory,
            environment_name="process",
            session_id=f"process-{directory.name}",
            trial_paths=paths,
            task_env_config=EnvironmentConfig(env=TASK),
            extra_docker_compose=[overlay],
        )
        made.append(environment)
        return environment

    yield make
    await asyncio.gather(*(environment.stop(delete=True) for environment in made))


async def test_a_command_gets_what_harbors_environment_gives_it(
    make: Make,
    harbors: Callable[[Path], BaseEnvironment],
    definition: Callable[..., Path],
) -> None:
    found: dict[str, list[str]] = {}

    async def look(lines: str) -> None:
        directory = definition(f"{DOCKERFILE}{lines}")
        ours = make(directory=directory, task={"env": TASK}, network=NetworkMode.PUBLIC)
        for environment in (ours, harbors(directory)):
            await environment.start(force_build=False)
            for who in [who for who, (of, _) in WHO.items() if of == lines]:
                command = f"; echo '{SEPARATOR.strip()}'; ".join(LOOKS.values())
                done = await environment.exec(command, user=WHO[who][1], env={"CALLS": "e"})
                seen = zip(LOOKS, (done.stdout or "").split(SEPARATOR), strict=True)
                for what, output in seen:
                    found.setdefault(f"{what} of {who}", []).append(output)

    await asyncio.gather(*(look(lines) for lines in {lines for lines, _ in WHO.values()}))
    assert len(found) == len(WHO) * len(LOOKS)
    assert {name: outputs for name, outputs in found.items() if len(set(outputs)) > 1} == {}
    assert all(outputs[0].strip() for outputs in found.values())
