"""Deadlines that hold even when user code swallows cancellation or blocks."""

import asyncio
import math
from collections.abc import Awaitable, Callable

from osmosis_ai.rollout.errors import DeadlineExceededError, WorkflowExitError

_REPORTED_QUEUE_SEC = 0.1


def deadline_message(phase: str, timeout_sec: float, queued_sec: float = 0.0) -> str:
    """Say which phase exceeded which deadline, and how much of it was queueing."""
    text = f"{phase} exceeded its {timeout_sec:g}s deadline"
    if queued_sec >= _REPORTED_QUEUE_SEC:
        text += f" ({queued_sec:.1f}s of it spent queued)"
    return text


async def run_within[T](
    call: Callable[[], Awaitable[T]],
    *,
    phase: str,
    timeout_sec: float | None,
    queued_sec: float = 0.0,
) -> T:
    """Await ``call()`` under a deadline of ``timeout_sec`` less ``queued_sec``.

    A call that returns late (it blocked the loop, or swallowed its
    cancellation) is as late as one that was cancelled in time.

    Raises:
        DeadlineExceededError: the deadline passed.
        WorkflowExitError: the call raised ``SystemExit``, a group of such, or
            ``CancelledError`` although its caller was not cancelled.
    """
    budget = math.inf if timeout_sec is None else timeout_sec - queued_sec
    expired = DeadlineExceededError(
        deadline_message(phase, timeout_sec if timeout_sec is not None else 0, queued_sec)
    )
    if budget <= 0:
        raise expired
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    pending_cancels = task.cancelling() if task else 0
    deadline = loop.time() + budget
    try:
        async with asyncio.timeout(None if math.isinf(budget) else budget):
            # In a task of its own, so that code that cancels its task cancels no caller.
            value = await asyncio.ensure_future(_call_catching_exits(call, phase))
    except asyncio.CancelledError as exc:
        if task is None or task.cancelling() > pending_cancels:
            raise
        if loop.time() >= deadline:
            raise expired from exc
        raise WorkflowExitError(f"{phase} raised CancelledError by itself") from exc
    except Exception as exc:
        if loop.time() >= deadline:
            raise expired from exc
        raise
    if loop.time() >= deadline:
        raise expired
    return value


async def _call_catching_exits[T](call: Callable[[], Awaitable[T]], phase: str) -> T:
    """Await ``call()``; what would end the event loop's process becomes an error of its own."""
    try:
        return await call()
    except SystemExit as exc:
        raise WorkflowExitError(f"{phase} called sys.exit({exc.code!r})") from exc
    except BaseExceptionGroup as exc:
        if isinstance(exc, Exception) or exc.subgroup(KeyboardInterrupt) is not None:
            raise
        raise WorkflowExitError(f"{phase} raised {type(exc).__name__}: {exc}") from exc
