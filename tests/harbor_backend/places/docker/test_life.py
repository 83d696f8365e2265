"""How a sandbox comes to be, and that it always goes."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harbor_backend.errors import SandboxLostError
from harbor_backend.places import labels
from harbor_backend.places.docker.engine import Engine, EngineError
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.conftest import channel_dirs, own_containers
from tests.harbor_backend.places.docker.conftest import Make

pytestmark = pytest.mark.docker


async def test_a_sandbox_is_labelled_and_leaves_nothing(
    make: Make, supervise: bool, engine: Any
) -> None:
    dirs = channel_dirs()
    sandbox = make(image=BASE_IMAGE, supervise=supervise, rollout_id="r/1")
    await sandbox.start(force_build=False)
    found = engine.containers.get(sandbox.name).labels
    assert found[labels.ROLLOUT] == "r/1"
    assert found[labels.SANDBOX] == "docker"
    assert sandbox.name in own_containers(engine)
    await sandbox.stop(delete=True)
    assert own_containers(engine) == []
    assert channel_dirs() <= dirs


async def test_a_kept_sandbox_runs_on_under_another_name(
    make: Make, supervise: bool, engine: Any
) -> None:
    sandbox = make(image=BASE_IMAGE, supervise=supervise)
    await sandbox.start(force_build=False)
    await sandbox.exec("echo evidence > /evidence")
    await sandbox.stop(delete=False)
    kept = engine.containers.get(sandbox.name)
    try:
        assert kept.name.startswith(labels.KEPT_PREFIX)
        await asyncio.sleep(0.5)
        kept.reload()
        assert kept.status == "running"
        assert kept.exec_run("cat /evidence").output == b"evidence\n"
    finally:
        kept.remove(force=True)


@pytest.mark.parametrize(
    "dockerfile",
    [
        f'FROM {BASE_IMAGE}\nENTRYPOINT ["/no/such/program"]\n',
        f'FROM {BASE_IMAGE}\nENTRYPOINT ["false"]\n',
        f'FROM {BASE_IMAGE}\nENTRYPOINT ["sh", "-c", "echo the reason >&2; exit 9"]\n',
    ],
    ids=["missing", "ends at once", "says why"],
)
async def test_a_container_that_does_not_come_up(make: Make, engine: Any, dockerfile: str) -> None:
    dirs = channel_dirs()
    sandbox = make(dockerfile)
    with pytest.raises((SandboxLostError, EngineError)) as caught:
        await asyncio.wait_for(sandbox.start(force_build=False), 30)
    if "reason" in dockerfile:
        assert "the reason" in str(caught.value)
        assert "exit code 9" in str(caught.value)
    await sandbox.stop(delete=True)
    assert own_containers(engine) == []
    assert channel_dirs() <= dirs


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.03, 0.06, 0.15, 0.3, 0.5])
async def test_cancellation_while_starting_leaves_nothing(
    make: Make, engine: Any, delay: float
) -> None:
    dirs = channel_dirs()
    sandbox = make(image=BASE_IMAGE)
    starting = asyncio.create_task(sandbox.start(force_build=False))
    await asyncio.sleep(delay)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await sandbox.stop(delete=True)
    assert own_containers(engine) == []
    assert channel_dirs() <= dirs


async def test_a_stop_while_starting_leaves_nothing(make: Make, engine: Any) -> None:
    """A grader's sandbox is stopped while it starts when the agent's cannot be ended."""
    sandbox = make(image=BASE_IMAGE)
    async with asyncio.TaskGroup() as group:
        starting = group.create_task(sandbox.start(force_build=False))
        await asyncio.sleep(0.02)
        starting.cancel()
    await sandbox.stop(delete=True)
    assert own_containers(engine) == []


async def test_an_image_that_vanished_is_built_again(
    make: Make, engine: Any, definition: Callable[..., Path]
) -> None:
    directory = definition(f"FROM {BASE_IMAGE}\nRUN echo {__name__}.vanished > /built\n")
    first = make(directory=directory)
    await first.start(force_build=False)
    image = engine.containers.get(first.name).image
    await first.stop(delete=True)
    engine.images.remove(image.id, force=True)
    again = make(directory=directory)
    await again.start(force_build=False)
    assert "vanished" in ((await again.exec("cat /built")).stdout or "")


async def test_a_remote_engine_is_used_without_mounts(
    make: Make, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As over ``ssh://``: no directory of this machine can be mounted there."""
    monkeypatch.setattr(Engine, "is_local", property(lambda self: False))
    sandbox = make(image=BASE_IMAGE)
    await sandbox.start(force_build=False)
    assert not sandbox.supervised
    assert engine.containers.get(sandbox.name).attrs["Mounts"] == []
    assert (await sandbox.exec("echo ok")).stdout == "ok\n"


async def test_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine("unix:///nonexistent/docker.sock")
    with pytest.raises(EngineError, match=r"does not answer.*make setup.*DOCKER_HOST"):
        await engine.create("x", {})
    await engine.aclose()
    with pytest.raises(EngineError, match="ssh://host"):
        Engine("ssh://host")


async def test_many_at_once(make: Make, engine: Any) -> None:
    sandboxes = [make(image=BASE_IMAGE) for _ in range(6)]
    async with asyncio.TaskGroup() as group:
        for sandbox in sandboxes:
            group.create_task(sandbox.start(force_build=False))
    outputs = await asyncio.gather(
        *(sandbox.exec("readlink /proc/self/ns/pid") for sandbox in sandboxes)
    )
    assert len({done.stdout for done in outputs}) == 6
    await asyncio.gather(*(sandbox.stop(delete=True) for sandbox in sandboxes))
    assert own_containers(engine) == []
