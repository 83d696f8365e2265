"""Ends what runs: lets it finish, then cancels it, then insists."""

import asyncio
import logging

import anyio

from osmosis_ai.rollout.server.runner import Runner

logger = logging.getLogger(__name__)

CANCEL_SEC = 120.0
FORCE_SEC = 10.0


async def drain(runner: Runner, grace_sec: float, hurry: asyncio.Event) -> None:
    """Wait for the rollouts, then stop those that are left.

    Those that asked for it are handed over to be run again, all others are
    cancelled; every result is stored. ``hurry`` cuts the waiting short.
    """
    if await _ended(runner, grace_sec, hurry):
        return
    async with asyncio.TaskGroup() as group:
        for run in runner.runs:
            group.create_task(_stop(runner, run.id))
    if await _ended(runner, CANCEL_SEC, hurry):
        return
    for run in runner.runs:
        if run.task is not None:
            run.task.cancel()
    if not await runner.tasks.wait(FORCE_SEC):
        stuck = ", ".join(run.id for run in runner.runs)
        logger.error("Unconfirmed cleanup: rollouts ignore their cancellation: %s", stuck)
        await runner.publish_stuck()


async def _stop(runner: Runner, rollout_id: str) -> None:
    run = runner.find(rollout_id)
    if run is None or run.watch.finished:
        return
    try:
        if run.request.on_interrupt == "rerun":
            await runner.hand_over(run)
        else:
            await runner.cancel(run)
    except Exception:
        logger.exception("Rollout %s: the backend could not cancel it", rollout_id)


async def _ended(runner: Runner, within_sec: float, hurry: asyncio.Event) -> bool:
    """Whether all rollouts ended in time; ``hurry`` is as if the time were up."""
    ended = False
    async with anyio.create_task_group() as group:

        async def cut_short() -> None:
            await hurry.wait()
            group.cancel_scope.cancel()

        group.start_soon(cut_short)
        ended = await runner.tasks.wait(within_sec)
        group.cancel_scope.cancel()
    return ended
