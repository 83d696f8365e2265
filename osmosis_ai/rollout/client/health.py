"""What a server tells of itself, and waiting until it has nothing to do."""

import asyncio
from typing import Any

from tenacity import AsyncRetrying, retry_if_exception, retry_if_result, wait_fixed

from osmosis_ai.rollout.client.caller import Caller
from osmosis_ai.rollout.client.errors import RolloutProtocolError
from osmosis_ai.rollout.client.retry import may_pass


async def wait_idle(
    caller: Caller, timeout_sec: float, poll_interval_sec: float, process_id: str | None
) -> dict[str, Any]:
    """Ask for the health until no rollout is active; see ``RolloutClient.wait_idle``."""

    async def ask() -> dict[str, Any]:
        health = await caller.health()
        _check_process(health, process_id)
        return health

    polling = AsyncRetrying(
        retry=retry_if_exception(may_pass) | retry_if_result(lambda health: _active(health) > 0),
        wait=wait_fixed(poll_interval_sec),
        reraise=True,
    )
    async with asyncio.timeout(timeout_sec):
        health: dict[str, Any] = await polling(ask)
        return health


def _check_process(health: dict[str, Any], process_id: str | None) -> None:
    found = health.get("process_id")
    if process_id is not None and found != process_id:
        raise RolloutProtocolError(
            f"the server was restarted: its process_id is {found!r}, not {process_id!r}",
            status_code=200,
        )


def _active(health: dict[str, Any]) -> int:
    """How many rollouts the server says it runs, or has waiting."""
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
