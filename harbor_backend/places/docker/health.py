"""Waiting for an image's own health check, which the engine runs."""

from typing import Any

import anyio

from harbor_backend.errors import SandboxLostError, SandboxStartError
from harbor_backend.places.docker.engine import Engine
from harbor_backend.places.docker.image import Healthcheck
from harbor_backend.places.docker.streams import plain_text

_FIRST_WAIT_SEC, _LONGEST_WAIT_SEC = 0.05, 1.0
# What an engine may take beyond the times of a check on a busy machine.
_MARGIN_SEC = 60.0
_HEALTHY, _UNHEALTHY = "healthy", "unhealthy"


async def wait_until_healthy(engine: Engine, container: str, check: Healthcheck) -> None:
    """Return once the engine calls a container healthy.

    Raises:
        SandboxStartError: it calls it unhealthy, or has not said by when it must have; the text
            holds what the last check printed.
        SandboxLostError: the container ended.
    """
    health: dict[str, Any] = {}
    wait = _FIRST_WAIT_SEC
    with anyio.move_on_after(check.longest_sec + _MARGIN_SEC):
        while health.get("Status") != _UNHEALTHY:
            state = (await engine.inspect(container))["State"]
            if not state["Running"]:
                raise SandboxLostError("The sandbox ended before its HEALTHCHECK passed")
            health = state.get("Health") or {}
            if health.get("Status") == _HEALTHY:
                return
            await anyio.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_WAIT_SEC)
    raise SandboxStartError(_failure(health, check))


def _failure(health: dict[str, Any], check: Healthcheck) -> str:
    last = (health.get("Log") or [{}])[-1]
    failed = health.get("FailingStreak", 0)
    result = (
        f"The last one ended with exit code {last['ExitCode']} and printed: "
        f"{plain_text(last.get('Output') or '') or 'nothing'}"
        if last
        else "It never ran"
    )
    verdict = (
        "calls the sandbox unhealthy"
        if health.get("Status") == _UNHEALTHY
        else f"has not passed within {check.longest_sec + _MARGIN_SEC:g}s"
    )
    return (
        f"The image's HEALTHCHECK ({plain_text(check.command, 200)}) {verdict} after {failed} "
        f"failed checks in a row. {result}. Mend the check or the service that it asks for, in "
        "the task's Dockerfile or its base image"
    )
