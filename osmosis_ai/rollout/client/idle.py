"""Waiting until a server has nothing to do."""

import asyncio
from typing import Any

import httpx

from osmosis_ai.rollout.client.caller import BUSY, Caller
from osmosis_ai.rollout.client.errors import RolloutProtocolError


async def wait_idle(
    caller: Caller, timeout_sec: float, poll_interval_sec: float, process_id: str | None
) -> dict[str, Any]:
    """Ask for the health until no rollout is active; see ``RolloutClient.wait_idle``."""
    async with asyncio.timeout(timeout_sec):
        while True:
            health = await _reachable_health(caller)
            if health is not None:
                _check_process(health, process_id)
                if _active(health) == 0:
                    return health
            await asyncio.sleep(poll_interval_sec)


async def _reachable_health(caller: Caller) -> dict[str, Any] | None:
    try:
        return await caller.health()
    except httpx.TransportError:
        return None
    except RolloutProtocolError as exc:
        if exc.status_code in BUSY:
            return None
        raise


def _check_process(health: dict[str, Any], process_id: str | None) -> None:
    found = health.get("process_id")
    if process_id is not None and found != process_id:
        raise RolloutProtocolError(
            f"the server was restarted: its process_id is {found!r}, not {process_id!r}",
            status_code=200,
        )


def _active(health: dict[str, Any]) -> int:
    lifecycle = health.get("lifecycle")
    if isinstance(lifecycle, dict) and isinstance(lifecycle.get("active_rollouts"), int):
        active: int = lifecycle["active_rollouts"]
        return active
    # The callback generation tells what waits for a slot and what has one.
    slots = health.get("concurrency")
    if isinstance(slots, dict):
        counts = [slots.get("queued"), slots.get("running")]
        if all(isinstance(count, int) for count in counts):
            return sum(count for count in counts if isinstance(count, int))
    raise RolloutProtocolError("GET /health does not tell the active rollouts", status_code=200)
