"""The reaper takes what a dead engine left, and nothing else. Real containers, real processes."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from harbor_backend.places import labels
from harbor_backend.places.docker.engine import Engine, EngineError
from harbor_backend.places.docker.reaper import reap
from harbor_backend.places.docker.sandboxes import (
    Owner,
    SandboxRecord,
    keep_sandbox,
    list_sandboxes,
    remove_sandboxes,
)
from harbor_backend.program.runtime import Runtime
from sandbox_images import BASE_IMAGE

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
HOLDS_AN_ID = """
from harbor_backend.places.instance import instance_id
print(instance_id(), flush=True)
input()
"""

KEEPS_A_SANDBOX = """
import asyncio, sys
from pathlib import Path
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths
from harbor_backend.places.docker.environment import DockerEnvironment
from sandbox_images import BASE_IMAGE
async def main():
    sandbox = DockerEnvironment(
        environment_dir=Path("tasks"), environment_name="kept", session_id="kept__env",
        trial_paths=TrialPaths(trial_dir=Path("/nowhere")),
        task_env_config=EnvironmentConfig(docker_image=BASE_IMAGE),
        network_policy=NetworkPolicy(network_mode=NetworkMode.PUBLIC),
        runtime_dir=sys.argv[1],
    )
    await sandbox.start(force_build=False)
    holder = sandbox._namespace.container
    await sandbox.stop(delete=False)
    print(sandbox.name, holder, flush=True)
asyncio.run(main())
"""

type Make = Callable[..., Awaitable[str]]


@pytest.fixture
async def api() -> AsyncIterator[Engine]:
    api = Engine()
    yield api
    await api.aclose()


@pytest.fixture
async def make(api: Engine) -> AsyncIterator[Make]:
    """Starts a container with given labels and returns its id; removes it afterwards."""
    made: list[str] = []

    async def container(marks: dict[str, str], prefix: str = labels.PREFIX) -> str:
        name = f"{prefix}-test-{uuid.uuid4().hex[:12]}"
        config = {
            "Image": BASE_IMAGE,
            "Cmd": ["sleep", "600"],
            "Labels": marks,
            "HostConfig": {"NetworkMode": "none", "Init": True},
        }
        made.append(await api.create(name, config))
        await api.start(made[-1])
        return made[-1]

    yield container
    for identifier in made:
        await api.remove(identifier)


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A container that another tool started, with that tool's own labels."""
    monkeypatch.setattr(testcontainers_config, "ryuk_disabled", True)  # its image is not here
    with DockerContainer(BASE_IMAGE, network_mode="none").with_command("sleep 600") as container:
        yield str(container.get_wrapped_container().id)


@contextmanager
def living_instance() -> Iterator[str]:
    """The instance id of another process, for as long as that process lives."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_AN_ID],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def dead_instance() -> str:
    with living_instance() as identifier:
        pass
    return identifier


def marks(instance: str, rollout: str = "r-1") -> dict[str, str]:
    return {labels.SANDBOX: "docker", labels.INSTANCE: instance, labels.ROLLOUT: rollout}


async def exists(api: Engine, container: str) -> bool:
    try:
        await api.inspect(container)
    except EngineError as exc:
        if exc.status == 404:
            return False
        raise
    return True


async def of_rollout(api: Engine, rollout_id: str) -> list[SandboxRecord]:
    return [s for s in await list_sandboxes(api) if s.rollout_id == rollout_id]


async def test_a_sandbox_of_a_dead_engine_is_removed_and_reported(
    api: Engine, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    container = await make(marks(dead_instance(), "left-behind"))
    with caplog.at_level("INFO"):
        removed = await reap(api)
    assert [s.rollout_id for s in removed if s.container == container] == ["left-behind"]
    assert not await exists(api, container)
    assert "of rollout left-behind" in caplog.text


async def test_a_sandbox_of_a_living_engine_stays_until_that_engine_is_dead(
    api: Engine, make: Make
) -> None:
    with living_instance() as identifier:
        container = await make(marks(identifier))
        await reap(api)
        assert await exists(api, container)
    await reap(api)
    assert not await exists(api, container)


async def test_what_holds_a_namespace_goes_with_its_engine_only(api: Engine, make: Make) -> None:
    with living_instance() as identifier:
        container = await make({labels.NAMESPACE: identifier})
        assert container not in {s.container for s in await reap(api)}
        assert await exists(api, container)
    await reap(api)
    assert not await exists(api, container)


async def test_a_kept_sandbox_has_its_network_until_it_is_removed(
    api: Engine, engine: Any, sdk_runtime: Runtime
) -> None:
    command = [sys.executable, "-c", KEEPS_A_SANDBOX, str(sdk_runtime.path)]
    done = await anyio.run_process(command, cwd=ROOT)
    name, holder = done.stdout.decode().split()
    kept = engine.containers.get(name)
    try:
        await reap(api)
        assert kept.exec_run("ls /sys/class/net").output.split() == [b"eth0", b"lo"]
        assert await exists(api, holder)
    finally:
        found = [s for s in await list_sandboxes(api) if s.name == name]
        await remove_sandboxes(api, found)
    assert not await exists(api, holder)


async def test_nothing_else_is_touched(api: Engine, make: Make, stranger: str) -> None:
    dead = dead_instance()
    others = [
        stranger,
        await make(marks(dead), prefix=labels.KEPT_PREFIX),
        await make({}),
        await make({labels.INSTANCE: dead, labels.ROLLOUT: "r-1"}),
        await make(marks(f"0123456789ab-{uuid.uuid4().hex[:8]}")),
        await make({labels.SANDBOX: "docker"}),
        await make(marks(f"{dead.partition('-')[0]}-../../somewhere")),
    ]
    removed = await reap(api)
    assert not {s.container for s in removed} & set(others)
    assert [await exists(api, container) for container in others] == [True] * len(others)


async def test_the_list_says_whose_a_sandbox_is(api: Engine, make: Make) -> None:
    rollout = f"listed-{uuid.uuid4().hex}"
    with living_instance() as identifier:
        await make(marks(identifier, rollout))
        await make(marks(dead_instance(), rollout), prefix=labels.KEPT_PREFIX)
        await make(marks("elsewhere-1", rollout))
        found = await of_rollout(api, rollout)
    assert {(s.owner, s.kept, s.stale) for s in found} == {
        (Owner.ALIVE, False, False),
        (Owner.DEAD, True, False),
        (Owner.UNKNOWN, False, False),
    }
    assert {(s.kind, s.state, s.project) for s in found} == {("docker", "running", None)}
    assert all(0 <= s.age_sec < 120 for s in found)


async def test_a_sandbox_that_was_kept_survives_its_engine(api: Engine, make: Make) -> None:
    rollout = f"kept-later-{uuid.uuid4().hex}"
    container = await make(marks(dead_instance(), rollout))
    (sandbox,) = await of_rollout(api, rollout)
    kept = await keep_sandbox(api, sandbox)
    assert kept.kept
    assert await keep_sandbox(api, kept) == kept
    await reap(api)
    assert await of_rollout(api, rollout) == [kept]
    await remove_sandboxes(api, [kept])
    assert not await exists(api, container)


async def test_two_reapers_at_once_do_not_disturb_each_other(api: Engine, make: Make) -> None:
    dead = dead_instance()
    containers = [await make(marks(dead)) for _ in range(3)]
    await asyncio.gather(reap(api), reap(api))
    assert not any([await exists(api, container) for container in containers])


async def test_an_engine_that_does_not_answer_is_said() -> None:
    nowhere = Engine("unix:///nonexistent.sock")
    with pytest.raises(EngineError, match=r"unix:///nonexistent\.sock does not answer"):
        await reap(nowhere)
    await nowhere.aclose()


def write_task(folder: Path, solution: str) -> None:
    task = folder / "slow"
    for part in ("environment", "solution", "tests"):
        (task / part).mkdir(parents=True)
    (task / "task.toml").write_text("[environment]\nbuild_timeout_sec = 120\n")
    (task / "instruction.md").write_text("Wait.\n")
    (task / "environment/Dockerfile").write_text(f"FROM {BASE_IMAGE}\n")
    (task / "solution/solve.sh").write_text(f"#!/bin/bash\n{solution}\n")
    (task / "tests/test.sh").write_text("#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n")


def engine_process(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.harbor_backend.one_trial", str(folder), "slow", *arguments],
        cwd=ROOT,
        env={**os.environ, "_OSMOSIS_ROLLOUT_ARTIFACT_ROOT": str(folder / "artifacts")},
        stdout=subprocess.PIPE,
        text=True,
    )


async def networks(api: Engine, project: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await api.call("GET", "/networks")
    return [n for n in found if (n["Labels"] or {}).get("com.docker.compose.project") == project]


@pytest.mark.parametrize("environment", ["osmosis", "docker"])
async def test_a_killed_engine_leaves_a_sandbox_that_is_reaped(
    api: Engine, tmp_path: Path, environment: str
) -> None:
    write_task(tmp_path, "echo started > /tmp/started; sleep 600")
    process = engine_process(tmp_path, *[name for name in [environment] if name == "docker"])
    assert process.stdout is not None
    identifier = (await asyncio.to_thread(process.stdout.readline)).strip()
    try:
        async with asyncio.timeout(120):
            sandbox = await solving(api, identifier)
        project = sandbox.project
        assert sandbox.owner is Owner.ALIVE
        assert sandbox.rollout_id == "reaper-slow"
        assert (project is not None) == (environment == "docker")
        assert project is None or len(await networks(api, project)) == 1
        await reap(api)
        assert await exists(api, sandbox.container)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    removed = await reap(api)
    assert sandbox.container in {s.container for s in removed}
    assert [s for s in await list_sandboxes(api) if s.instance == identifier] == []
    assert project is None or await networks(api, project) == []


async def solving(api: Engine, identifier: str) -> SandboxRecord:
    """The sandbox of an engine process once the solution runs in it."""
    while True:
        for sandbox in await list_sandboxes(api):
            if sandbox.instance != identifier or sandbox.state != "running":
                continue
            with contextlib.suppress(EngineError):
                path = f"/containers/{sandbox.container}/archive"
                await api.call("HEAD", path, params={"path": "/tmp/started"})
                return sandbox
        await asyncio.sleep(0.2)


async def test_a_backend_reaps_at_its_first_rollout(
    api: Engine, make: Make, tmp_path: Path
) -> None:
    container = await make(marks(dead_instance()))
    write_task(tmp_path, "true")
    with engine_process(tmp_path) as process:
        printed, _ = await asyncio.to_thread(process.communicate, timeout=120)
    assert '"reward":1.0' in printed
    assert not await exists(api, container)
