"""An image's health check is waited for; the engine runs it."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harbor_backend.errors import HarborBackendError, SandboxLostError, SandboxStartError
from harbor_backend.places.docker import health
from harbor_backend.places.docker.engine import Engine
from harbor_backend.places.docker.health import wait_until_healthy
from harbor_backend.places.docker.image import Healthcheck
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.places.docker.conftest import Make

CHECK = "HEALTHCHECK --interval=100ms --timeout=2s --start-period={start} --retries={retries} CMD "


def dockerfile(check: str, *lines: str, start: str = "10s", retries: int = 3) -> str:
    times = CHECK.format(start=start, retries=retries)
    return "\n".join([f"FROM {BASE_IMAGE}", f"{times}{check}", *lines, ""])


@pytest.mark.docker
async def test_commands_begin_when_the_service_is_there(
    make: Make, supervise: bool, definition: Callable[..., Path]
) -> None:
    script = '#!/bin/sh\n(sleep 1.5; date +%s%N > /up) &\nexec "$@"\n'
    lines = ("COPY --chmod=755 entry.sh /entry", 'ENTRYPOINT ["/entry"]')
    directory = definition(dockerfile("test -f /up", *lines), entry__sh=script)
    sandbox = make(directory=directory, supervise=supervise)
    await sandbox.start(force_build=False)
    began = (await sandbox.exec("cat /up")).stdout
    assert began, "the sandbox was given away before it was healthy"


@pytest.mark.docker
async def test_it_runs_as_the_images_user_with_the_tasks_environment(make: Make) -> None:
    check = 'echo "$(id -u) $WHERE" > /tmp/who'
    sandbox = make(dockerfile(check, "USER 1234"), task={"env": {"WHERE": "here"}})
    await sandbox.start(force_build=False)
    assert (await sandbox.exec("cat /tmp/who")).stdout == "1234 here\n"


@pytest.mark.docker
async def test_one_that_fails_ends_the_start_with_its_words(make: Make) -> None:
    check = "printf '\\033[31mno database\\033[0m'; exit 7"
    sandbox = make(dockerfile(check, start="1ms", retries=2))
    began = time.monotonic()
    with pytest.raises(SandboxStartError) as caught:
        await sandbox.start(force_build=False)
    assert time.monotonic() - began < 30
    text = str(caught.value)
    assert "HEALTHCHECK" in text
    assert "exit code 7 and printed: no database" in text
    assert text.isprintable()


@pytest.mark.docker
async def test_one_that_is_switched_off_is_not_waited_for(make: Make) -> None:
    sandbox = make(dockerfile("false", "HEALTHCHECK NONE", start="60s"))
    await sandbox.start(force_build=False)
    assert (await sandbox.exec("cat /proc/1/comm")).stdout == "osmosis-supervi\n"


class Reporting(Engine):
    """An engine that says these things of a container, one after the other."""

    def __init__(self, *states: dict[str, Any]) -> None:
        super().__init__("unix:///nowhere/docker.sock")
        self._states = list(states)

    async def inspect(self, container: str) -> dict[str, Any]:
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        return {"State": {"Running": True, **state}}


def said(status: str, *outputs: str) -> dict[str, Any]:
    log = [{"ExitCode": 1, "Output": output} for output in outputs]
    return {"Health": {"Status": status, "FailingStreak": len(outputs), "Log": log}}


SHORT = Healthcheck(("CMD-SHELL", "probe"), 0.01, 0.01, 0.0, 1)
FAILURES: dict[str, tuple[dict[str, Any], type[HarborBackendError], str]] = {
    "unhealthy": (said("unhealthy", "a", "b"), SandboxStartError,
                  r"\(probe\) calls the sandbox unhealthy after 2 failed.*printed: b"),
    "never healthy": (said("starting", "a"), SandboxStartError, "has not passed within .*: a"),
    "never run": (said("starting"), SandboxStartError, "It never ran"),
    "unknown to the engine": ({}, SandboxStartError, "It never ran"),
    "ended": ({"Running": False}, SandboxLostError, "ended before its HEALTHCHECK"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILURES)
async def test_what_a_failure_says(
    case: str, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_MARGIN_SEC", 0.1)
    state, kind, text = FAILURES[case]
    engine = Reporting(said("starting"), state)
    with pytest.raises(kind, match=text):
        await asyncio.wait_for(wait_until_healthy(engine, "c", SHORT), 20)
    await engine.aclose()


async def test_it_goes_on_as_soon_as_the_engine_says_so(anyio_backend: str) -> None:
    engine = Reporting(said("starting"), said("starting", "no"), said("healthy", "no", "yes"))
    await asyncio.wait_for(wait_until_healthy(engine, "c", SHORT), 20)
    await engine.aclose()
