"""A rollout's life on a backend whose phases are scripted; real backends are in the conformance."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from osmosis_ai.rollout import (
    ExecutionOutcome,
    ExecutionRequest,
    ExecutionResult,
    RolloutContext,
    RolloutSample,
    RolloutStatus,
)
from osmosis_ai.rollout.backend.gateway import BackendGateway
from osmosis_ai.rollout.backend.lifecycle import LifecycleBackend
from osmosis_ai.rollout.backend.live import LiveRollout
from osmosis_ai.rollout.context import RolloutProgress

REQUEST = ExecutionRequest(id="r")
SUCCESS = ExecutionResult(status=RolloutStatus.SUCCESS, sample=RolloutSample())
FAILURE = ExecutionResult(status=RolloutStatus.FAILURE, err_message="refused")
GRADED = ExecutionOutcome(
    workflow=SUCCESS,
    grader=ExecutionResult(status=RolloutStatus.SUCCESS, sample=RolloutSample(reward=0.5)),
)
CANCELLED = {
    "status": RolloutStatus.CANCELLED,
    "reward": None,
    "err_message": "The rollout was cancelled",
}

type Script = Callable[[LiveRollout], Awaitable[ExecutionOutcome]]


class Scripted(LifecycleBackend):
    """Runs a script in place of the phases; ``heard`` are the callbacks that were awaited."""

    def __init__(self, script: Script) -> None:
        super().__init__(BackendGateway())
        self._script = script
        self.heard: list[str] = []

    async def _run(self, rollout: LiveRollout) -> ExecutionOutcome:
        return await self._script(rollout)

    async def hear_workflow(self, result: ExecutionResult) -> None:
        self.heard.append(f"workflow {result.status.value}")

    async def hear_grader(self, result: ExecutionResult) -> None:
        self.heard.append(f"grader {result.status.value}")

    async def listened_to(self) -> ExecutionOutcome:
        """Execute the request with both callbacks."""
        return await self.execute(REQUEST, self.hear_workflow, self.hear_grader)


def ending_in(outcome: ExecutionOutcome, *, tells: bool = False) -> Script:
    """A script with this outcome, which ``tells`` of the workflow's end when it comes, or not."""

    async def script(rollout: LiveRollout) -> ExecutionOutcome:
        if tells:
            await rollout.workflow_ended(outcome.workflow)
        return outcome

    return script


async def hanging(rollout: LiveRollout) -> ExecutionOutcome:
    await asyncio.Event().wait()
    raise AssertionError("it waits forever")


async def stubborn(rollout: LiveRollout) -> ExecutionOutcome:
    """Goes on when it is cancelled, as user code may."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await rollout.workflow_ended(SUCCESS)
    return GRADED


@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize(
    ("outcome", "heard"),
    [
        (GRADED, ["workflow success", "grader success"]),
        (ExecutionOutcome(workflow=SUCCESS), ["workflow success"]),
        (ExecutionOutcome(workflow=FAILURE), ["workflow failure"]),
        (
            ExecutionOutcome(workflow=SUCCESS, grader=FAILURE),
            ["workflow success", "grader failure"],
        ),
    ],
)
async def test_every_outcome_is_told_once_and_in_order(
    outcome: ExecutionOutcome, heard: list[str], tells: bool
) -> None:
    backend = Scripted(ending_in(outcome, tells=tells))
    assert await backend.listened_to() is outcome
    assert backend.heard == heard


async def test_without_callbacks_nothing_is_different() -> None:
    assert await Scripted(ending_in(GRADED, tells=True)).execute(REQUEST) is GRADED


@pytest.mark.parametrize("timeout", [0, -1.5])
async def test_a_deadline_that_has_passed_runs_nothing(timeout: float) -> None:
    backend = Scripted(hanging)
    request = ExecutionRequest(id="r", agent_timeout_sec=timeout)
    outcome = await backend.execute(request, backend.hear_workflow, backend.hear_grader)
    assert outcome.result.err_message == f"Workflow exceeded its {timeout:g}s deadline"
    assert backend.heard == ["workflow failure"]


@pytest.mark.parametrize("raising", [{"workflow"}, {"grader"}, {"workflow", "grader"}])
async def test_a_callback_that_raises_changes_nothing_but_what_execute_does(
    raising: set[str],
) -> None:
    backend = Scripted(ending_in(GRADED, tells=True))

    async def hear(phase: str, result: ExecutionResult) -> None:
        backend.heard.append(phase)
        if phase in raising:
            raise ConnectionError(phase)

    first = min(raising, key=["workflow", "grader"].index)
    with pytest.raises(ConnectionError, match=first):
        await backend.execute(
            REQUEST, lambda result: hear("workflow", result), lambda result: hear("grader", result)
        )
    assert backend.heard == ["workflow", "grader"]
    assert backend.rollout_status("r") == {
        "status": RolloutStatus.SUCCESS,
        "reward": 0.5,
        "err_message": None,
    }


@pytest.mark.parametrize("script", [hanging, stubborn])
async def test_a_cancelled_rollout_has_an_outcome(script: Script) -> None:
    backend = Scripted(script)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(backend.listened_to())
        await asyncio.sleep(0)
        assert await backend.cancel_rollouts(ids=["r"]) == {"r": "cancelled_queued"}
    assert task.result().workflow.status is RolloutStatus.CANCELLED
    assert backend.heard == ["workflow cancelled"]
    assert backend.rollout_status("r") == CANCELLED
    assert task.cancelling() == 0


@pytest.mark.parametrize("script", [hanging, stubborn])
@pytest.mark.parametrize("requested", [True, False])
async def test_a_cancellation_from_outside_is_raised_and_told_to_nobody(
    script: Script, requested: bool
) -> None:
    """Also where the rollout was cancelled besides, and where code swallowed it."""
    backend = Scripted(script)
    task = asyncio.ensure_future(backend.listened_to())
    await asyncio.sleep(0)
    if requested:
        await backend.cancel_rollouts(all=True)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert backend.heard == []
    assert backend.rollout_status("r") is None
    assert task.cancelling() == 1


async def test_a_callers_own_timeout_stays_one() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await Scripted(stubborn).execute(REQUEST)


@pytest.mark.parametrize("swallows", [True, False])
@pytest.mark.parametrize(
    ("phase", "heard"),
    [
        ("workflow", ["workflow success", "grader cancelled"]),
        ("grader", ["workflow success", "grader success"]),
    ],
)
async def test_a_cancellation_while_a_callback_runs(
    phase: str, heard: list[str], swallows: bool
) -> None:
    backend = Scripted(ending_in(GRADED, tells=True))
    waiting = asyncio.Event()

    async def slow(result: ExecutionResult) -> None:
        backend.heard.append(f"{phase} {result.status.value}")
        waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not swallows:
                raise

    callbacks = {"workflow": backend.hear_workflow, "grader": backend.hear_grader, phase: slow}
    async with asyncio.TaskGroup() as group:
        task = group.create_task(
            backend.execute(REQUEST, callbacks["workflow"], callbacks["grader"])
        )
        await waiting.wait()
        await backend.cancel_rollouts(all=True)
    assert task.result().result.status is RolloutStatus.CANCELLED
    assert task.result().workflow is SUCCESS
    assert backend.heard == heard
    assert backend.rollout_status("r") == CANCELLED
    assert task.cancelling() == 0


@pytest.mark.parametrize("phase", ["workflow", "grader"])
async def test_a_callback_may_cancel_its_own_rollout(phase: str) -> None:
    backend = Scripted(ending_in(GRADED, tells=True))

    async def cancelling(result: ExecutionResult) -> None:
        await backend.cancel_rollouts(ids=["r"])

    callbacks = {phase: cancelling}
    outcome = await backend.execute(REQUEST, callbacks.get("workflow"), callbacks.get("grader"))
    assert outcome.result.status is RolloutStatus.CANCELLED
    await asyncio.sleep(0)  # nothing of the cancellation is left for the caller


async def test_a_backend_that_breaks_raises_and_tells_nothing() -> None:
    async def broken(rollout: LiveRollout) -> ExecutionOutcome:
        raise KeyError("bug")

    backend = Scripted(broken)
    for _ in range(2):  # its id is free again
        with pytest.raises(KeyError, match="bug"):
            await backend.listened_to()
    assert backend.heard == []
    assert backend.rollout_status("r") is None


async def test_the_context_at_admission_is_the_rollouts() -> None:
    found: list[LiveRollout] = []
    followed: list[RolloutStatus] = []

    async def script(rollout: LiveRollout) -> ExecutionOutcome:
        found.append(rollout)
        rollout.status = RolloutStatus.RUNNING
        return GRADED

    backend = Scripted(script)
    await backend.execute(REQUEST)
    progress = RolloutProgress(observer=followed.append)
    with RolloutContext("http://model/v1", rollout_id="r", progress=progress) as context:
        await backend.execute(REQUEST)
    assert [rollout.context for rollout in found] == [None, context]
    assert followed == [RolloutStatus.RUNNING, RolloutStatus.GRADING]
    assert progress.pushed
