"""Deadlines that hold whatever user code does."""

import asyncio
import contextlib
import sys
import time

import pytest

from osmosis_ai.rollout import RolloutContext, get_rollout_context
from osmosis_ai.rollout.deadline import deadline_message, run_within
from osmosis_ai.rollout.errors import DeadlineExceededError, WorkflowExitError


async def _value() -> str:
    return "value"


async def _forever() -> str:
    await asyncio.Event().wait()
    return "never"


@pytest.mark.parametrize("timeout", [None, 5, 0.5])
async def test_value_in_time(timeout: float | None) -> None:
    assert await run_within(_value, phase="P", timeout_sec=timeout) == "value"


@pytest.mark.parametrize(("timeout", "shown"), [(0, "0s"), (-1, "-1s"), (-0.25, "-0.25s")])
async def test_expired_before_it_begins(timeout: float, shown: str) -> None:
    called = False

    async def call() -> None:
        nonlocal called
        called = True

    with pytest.raises(DeadlineExceededError, match=f"^P exceeded its {shown} deadline$"):
        await run_within(call, phase="P", timeout_sec=timeout)
    assert not called


async def test_queue_time_is_charged_and_named() -> None:
    with pytest.raises(DeadlineExceededError) as caught:
        await run_within(_value, phase="P", timeout_sec=2, queued_sec=2.5)
    assert str(caught.value) == "P exceeded its 2s deadline (2.5s of it spent queued)"

    started = time.monotonic()
    with pytest.raises(DeadlineExceededError, match=r"10s deadline \(9\.9s of it spent queued\)"):
        await run_within(_forever, phase="P", timeout_sec=10, queued_sec=9.9)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("queued", "text"),
    [
        (0.0, "P exceeded its 3s deadline"),
        (0.09, "P exceeded its 3s deadline"),
        (0.1, "P exceeded its 3s deadline (0.1s of it spent queued)"),
    ],
)
def test_short_queueing_is_not_worth_a_word(queued: float, text: str) -> None:
    assert deadline_message("P", 3, queued) == text


async def test_cancels_what_runs_late() -> None:
    cleaned = False

    async def call() -> None:
        nonlocal cleaned
        try:
            await _forever()
        finally:
            cleaned = True

    with pytest.raises(DeadlineExceededError, match=r"P exceeded its 0\.05s deadline"):
        await run_within(call, phase="P", timeout_sec=0.05)
    assert cleaned
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_swallowed_cancellation_is_late_all_the_same() -> None:
    async def call() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await _forever()
        return "as if nothing had happened"

    with pytest.raises(DeadlineExceededError):
        await run_within(call, phase="P", timeout_sec=0.05)


async def test_replaced_cancellation_is_late_all_the_same() -> None:
    async def call() -> None:
        try:
            await _forever()
        except asyncio.CancelledError:
            raise ValueError("mine") from None

    with pytest.raises(DeadlineExceededError) as caught:
        await run_within(call, phase="P", timeout_sec=0.05)
    assert isinstance(caught.value.__cause__, ValueError)


async def test_blocking_code_is_late_when_it_returns() -> None:
    async def call() -> str:
        time.sleep(0.2)  # noqa: ASYNC251 (blocking the loop is the case)
        return "late"

    with pytest.raises(DeadlineExceededError):
        await run_within(call, phase="P", timeout_sec=0.05)


async def test_own_timeout_error_keeps_its_text() -> None:
    async def call() -> None:
        raise TimeoutError("the tool took too long")

    with pytest.raises(TimeoutError, match="the tool took too long") as caught:
        await run_within(call, phase="P", timeout_sec=30)
    assert not isinstance(caught.value, DeadlineExceededError)


@pytest.mark.parametrize("code", [None, 0, 3, "goodbye"])
async def test_sys_exit_becomes_an_error(code: int | str | None) -> None:
    async def call() -> None:
        sys.exit(code)

    with pytest.raises(WorkflowExitError) as caught:
        await run_within(call, phase="P", timeout_sec=None)
    assert str(caught.value) == f"P called sys.exit({code!r})"


async def test_self_raised_cancellation_becomes_an_error() -> None:
    async def call() -> None:
        raise asyncio.CancelledError

    with pytest.raises(WorkflowExitError, match="by itself"):
        await run_within(call, phase="P", timeout_sec=None)


@pytest.mark.parametrize("timeout", [None, 30])
async def test_cancellation_from_outside_passes(timeout: float | None) -> None:
    started = asyncio.Event()

    async def call() -> None:
        started.set()
        await _forever()

    task = asyncio.ensure_future(run_within(call, phase="P", timeout_sec=timeout))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_a_caller_that_outlived_a_cancellation_is_not_confused() -> None:
    async def outer() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await _forever()

        async def call() -> None:
            raise asyncio.CancelledError

        await run_within(call, phase="P", timeout_sec=None)

    task = asyncio.ensure_future(outer())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(WorkflowExitError):
        await task


def test_keyboard_interrupt_is_nobodys_failure() -> None:
    async def call() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(run_within(call, phase="P", timeout_sec=None))


async def test_cancelling_its_own_task_is_an_error_and_spares_the_caller() -> None:
    async def call() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    with pytest.raises(WorkflowExitError, match="CancelledError by itself"):
        await run_within(call, phase="P", timeout_sec=30)
    caller = asyncio.current_task()
    assert caller is not None
    assert caller.cancelling() == 0


@pytest.mark.parametrize("member", [SystemExit(3), asyncio.CancelledError()])
async def test_a_group_of_exits_becomes_an_error(member: BaseException) -> None:
    async def call() -> None:
        raise BaseExceptionGroup("several", [member, ValueError("x")])

    with pytest.raises(WorkflowExitError, match=r"P raised BaseExceptionGroup: several \(2 sub"):
        await run_within(call, phase="P", timeout_sec=None)


@pytest.mark.parametrize("end", [SystemExit, asyncio.CancelledError])
async def test_a_late_exit_is_late(end: type[BaseException]) -> None:
    async def call() -> None:
        time.sleep(0.2)  # noqa: ASYNC251 (blocking the loop is the case)
        raise end

    with pytest.raises(DeadlineExceededError):
        await run_within(call, phase="P", timeout_sec=0.05)


async def test_context_variables_reach_the_call() -> None:
    async def call() -> object:
        return get_rollout_context()

    with RolloutContext(rollout_id="outer") as outer:
        assert await run_within(call, phase="P", timeout_sec=None) is outer
