"""The registry of rollouts that a backend holds."""

import asyncio

import pytest

from osmosis_ai.rollout import (
    ExecutionOutcome,
    ExecutionRequest,
    ExecutionResult,
    RolloutSample,
    RolloutStatus,
)
from osmosis_ai.rollout.backend.live import cancelled_outcome
from osmosis_ai.rollout.backend.registry import (
    BackendClosedError,
    DuplicateRolloutError,
    LiveRollouts,
)

SUCCESS = ExecutionResult(status=RolloutStatus.SUCCESS, sample=RolloutSample(reward=0.5))


async def _hold(live: LiveRollouts, rollout_id: str, status: RolloutStatus) -> None:
    async with live.admit(ExecutionRequest(id=rollout_id)) as rollout:
        rollout.status = status
        await asyncio.Event().wait()


async def test_duplicate_id_is_refused_while_in_flight() -> None:
    live = LiveRollouts()
    async with live.admit(ExecutionRequest(id="a")):
        with pytest.raises(DuplicateRolloutError, match=r"'a' is already in flight"):
            async with live.admit(ExecutionRequest(id="a")):
                pytest.fail("admitted twice")
        async with live.admit(ExecutionRequest(id="b")):
            assert len(live) == 2
    async with live.admit(ExecutionRequest(id="a")):
        assert len(live) == 1
    assert len(live) == 0


async def test_status_of_live_and_finished_rollouts() -> None:
    live = LiveRollouts()
    assert live.status("a") is None
    async with live.admit(ExecutionRequest(id="a")) as rollout:
        assert live.status("a") == {"status": "queued", "reward": None, "err_message": None}
        rollout.status = RolloutStatus.RUNNING
        assert live.count(RolloutStatus.RUNNING) == 1
        live.record("a", ExecutionOutcome(workflow=SUCCESS))
        status = live.status("a")
        assert status is not None
        assert status["status"] == "running", "in flight until it has left"
    assert live.status("a") == {"status": "success", "reward": 0.5, "err_message": None}


async def test_retention_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("osmosis_ai.rollout.backend.registry._RETENTION_SEC", 0.05)
    live = LiveRollouts()
    live.record("a", ExecutionOutcome(workflow=SUCCESS))
    assert live.status("a") is not None
    await asyncio.sleep(0.06)
    assert live.status("a") is None


async def test_cancel_dispositions_are_remembered_until_the_end() -> None:
    live = LiveRollouts()
    async with asyncio.TaskGroup() as group:
        group.create_task(_hold(live, "run-1", RolloutStatus.RUNNING))
        group.create_task(_hold(live, "run-2", RolloutStatus.GRADING))
        group.create_task(_hold(live, "wait-1", RolloutStatus.QUEUED))
        await asyncio.sleep(0)
        first = await live.cancel(ids=["run-1", "wait-1", "gone"])
        assert first == {
            "run-1": "cancelled_running",
            "wait-1": "cancelled_queued",
            "gone": "not_found",
        }
        assert await live.cancel(prefix="run-") == {
            "run-1": "cancelled_running",
            "run-2": "cancelled_running",
        }
        assert sorted(await live.cancel(all=True)) == ["run-1", "run-2", "wait-1"]
    assert await live.cancel(all=True) == {}
    assert await live.cancel(ids=["run-1"]) == {"run-1": "not_found"}


async def test_exactly_one_selector() -> None:
    live = LiveRollouts()
    with pytest.raises(ValueError, match="exactly one of"):
        await live.cancel()
    with pytest.raises(ValueError, match="exactly one of"):
        await live.cancel(ids=[], all=True)


async def test_close_waits_for_the_end_and_refuses_more() -> None:
    live = LiveRollouts()
    ended = False

    async def slow_to_end() -> None:
        nonlocal ended
        async with live.admit(ExecutionRequest(id="a")):
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.05)
                ended = True

    task = asyncio.ensure_future(slow_to_end())
    await asyncio.sleep(0)
    await live.close()
    assert ended
    assert len(live) == 0
    with pytest.raises(BackendClosedError, match="shut down"):
        async with live.admit(ExecutionRequest(id="b")):
            pytest.fail("admitted after close")
    await live.close()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("workflow", [None, ExecutionResult(status=RolloutStatus.FAILURE)])
def test_cancelled_outcome_without_a_good_workflow(workflow: ExecutionResult | None) -> None:
    outcome = cancelled_outcome(workflow)
    assert outcome.workflow.status is RolloutStatus.CANCELLED
    assert outcome.grader is None


def test_cancelled_outcome_keeps_a_good_workflow() -> None:
    outcome = cancelled_outcome(SUCCESS)
    assert outcome.workflow is SUCCESS
    assert outcome.result.status is RolloutStatus.CANCELLED
    assert outcome.result.sample == SUCCESS.sample
