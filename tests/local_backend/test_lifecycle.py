"""Callbacks, status, cancellation and shutdown."""

import asyncio
import contextlib
from typing import Any

import pytest

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowContext,
    ExecutionOutcome,
    ExecutionResult,
    Grader,
    GraderContext,
    LocalBackend,
    RolloutStatus,
)
from osmosis_ai.rollout.backend.registry import BackendClosedError, DuplicateRolloutError
from tests.local_backend.gates import (
    DONE,
    Gate,
    GateConfig,
    GatedGrader,
    GatedWorkflow,
    QuickGrader,
    QuickWorkflow,
    grader_config,
    request,
    until,
    workflow_config,
)


class Stubborn(AgentWorkflow[GateConfig]):
    """Answers although it was cancelled."""

    async def run(self, ctx: AgentWorkflowContext[GateConfig]) -> list[dict[str, Any]]:
        assert ctx.config is not None
        with contextlib.suppress(asyncio.CancelledError):
            await ctx.config.gate.pass_through()
        return [DONE]


class Wrapping(AgentWorkflow[GateConfig]):
    """Turns its cancellation into an error of its own."""

    async def run(self, ctx: AgentWorkflowContext[GateConfig]) -> None:
        assert ctx.config is not None
        try:
            await ctx.config.gate.pass_through()
        except asyncio.CancelledError:
            raise RuntimeError("interrupted") from None


class StubbornGrader(GatedGrader):
    """Rewards although it was cancelled."""

    async def grade(self, ctx: GraderContext) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await super().grade(ctx)
        ctx.set_reward(0.5)


class Failing(AgentWorkflow[Any]):
    async def run(self, ctx: AgentWorkflowContext[Any]) -> None:
        raise RuntimeError("broken")


class Recorder:
    """Callbacks that write down what they got, and the status at that time."""

    def __init__(self, backend: LocalBackend) -> None:
        self.backend = backend
        self.calls: list[tuple[str, str, Any]] = []

    async def workflow(self, result: ExecutionResult) -> None:
        self.calls.append(("workflow", result.status.value, self._status()))

    async def grader(self, result: ExecutionResult) -> None:
        self.calls.append(("grader", result.status.value, self._status()))

    def _status(self) -> Any:
        status = self.backend.rollout_status("r")
        return status and status["status"].value

    async def execute(self, **fields: Any) -> ExecutionOutcome:
        return await self.backend.execute(request(**fields), self.workflow, self.grader)


async def test_callbacks_come_in_order_as_each_phase_ends() -> None:
    recorder = Recorder(LocalBackend(workflow=QuickWorkflow, grader=QuickGrader))
    await recorder.execute()
    assert recorder.calls == [("workflow", "success", "running"), ("grader", "success", "grading")]


async def test_grading_waits_for_the_workflow_callback() -> None:
    graded = Gate()
    backend = LocalBackend(
        workflow=QuickWorkflow, grader=GatedGrader, grader_config=grader_config(graded)
    )
    release = asyncio.Event()

    async def slow(result: ExecutionResult) -> None:
        await release.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(backend.execute(request(), slow))
        await asyncio.sleep(0.05)
        assert graded.entered == 0
        release.set()
        graded.opened.set()
    assert graded.entered == 1


@pytest.mark.parametrize(
    ("workflow", "fields", "calls"),
    [
        (Failing, {}, [("workflow", "failure", "running")]),
        (QuickWorkflow, {"grade": False}, [("workflow", "success", "running")]),
    ],
)
async def test_no_grader_callback_when_nothing_is_graded(
    workflow: Any, fields: dict[str, Any], calls: list[Any]
) -> None:
    recorder = Recorder(LocalBackend(workflow=workflow, grader=QuickGrader))
    outcome = await recorder.execute(**fields)
    assert recorder.calls == calls
    assert outcome.grader is None


async def test_a_refused_grading_is_called_back() -> None:
    recorder = Recorder(LocalBackend(workflow=QuickWorkflow))
    await recorder.execute()
    assert recorder.calls[1:] == [("grader", "failure", "grading")]


async def test_an_error_of_a_callback_is_the_callers() -> None:
    backend = LocalBackend(workflow=QuickWorkflow, grader=QuickGrader)

    async def broken(result: ExecutionResult) -> None:
        raise ConnectionError("nobody listens")

    with pytest.raises(ConnectionError, match="nobody listens"):
        await backend.execute(request(), broken)
    assert backend.health()["concurrency"]["running"] == 0
    assert (await backend.execute(request())).result.status is RolloutStatus.SUCCESS


async def test_status_through_a_rollouts_life() -> None:
    workflows, gradings = Gate(), Gate()
    backend = LocalBackend(
        workflow=GatedWorkflow,
        workflow_config=workflow_config(workflows, 1),
        grader=GatedGrader,
        grader_config=grader_config(gradings),
    )

    def status(rollout_id: str) -> str | None:
        known = backend.rollout_status(rollout_id)
        return None if known is None else known["status"].value

    assert status("a") is None
    async with asyncio.TaskGroup() as group:
        group.create_task(backend.execute(request("a")))
        await until(lambda: status("a") == "running")
        group.create_task(backend.execute(request("b")))
        await until(lambda: status("b") == "queued")
        workflows.opened.set()
        await until(lambda: status("a") == status("b") == "grading")
        gradings.opened.set()
    assert backend.rollout_status("a") == {"status": "success", "reward": 1.0, "err_message": None}


async def test_status_of_a_failure_is_retained() -> None:
    backend = LocalBackend(workflow=Failing)
    await backend.execute(request())
    assert backend.rollout_status("r") == {
        "status": "failure",
        "reward": None,
        "err_message": "broken",
    }


async def test_duplicate_id_in_flight() -> None:
    gate = Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate))
    async with asyncio.TaskGroup() as group:
        first = group.create_task(backend.execute(request(grade=False)))
        await until(lambda: gate.inside == 1)
        with pytest.raises(DuplicateRolloutError, match="'r' is already in flight"):
            await backend.execute(request(grade=False))
        gate.opened.set()
    assert first.result().result.status is RolloutStatus.SUCCESS
    assert (await backend.execute(request(grade=False))).result.status is RolloutStatus.SUCCESS


async def test_cancel_while_queued_and_while_running() -> None:
    gate = Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate, 1))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(backend.execute(request("running")))
        await until(lambda: gate.inside == 1)
        queued = group.create_task(backend.execute(request("queued")))
        await until(lambda: backend.health()["concurrency"]["queued"] == 1)
        assert await backend.cancel_rollouts(ids=["queued", "running", "other"]) == {
            "queued": "cancelled_queued",
            "running": "cancelled_running",
            "other": "not_found",
        }
    assert gate.entered == 1
    for task, name in ((running, "running"), (queued, "queued")):
        outcome = task.result()
        assert outcome.workflow.status is RolloutStatus.CANCELLED
        assert outcome.workflow.err_message
        assert outcome.grader is None
        assert task.cancelling() == 0
        status = backend.rollout_status(name)
        assert status is not None
        assert status["status"] is RolloutStatus.CANCELLED
    assert backend.health()["concurrency"] == {"max_concurrent": 1, "queued": 0, "running": 0}


@pytest.mark.parametrize("workflow", [Stubborn, Wrapping])
@pytest.mark.parametrize("grade", [True, False])
async def test_a_workflow_that_swallows_its_cancellation_is_cancelled(
    workflow: Any, grade: bool
) -> None:
    gate, gradings = Gate(), Gate()
    gradings.opened.set()
    backend = LocalBackend(
        workflow=workflow,
        workflow_config=workflow_config(gate),
        grader=GatedGrader,
        grader_config=grader_config(gradings),
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(backend.execute(request(grade=grade)))
        await until(lambda: gate.inside == 1)
        await backend.cancel_rollouts(all=True)
    assert task.result().result.status is RolloutStatus.CANCELLED
    assert task.cancelling() == 0
    assert gradings.entered == 0, "nothing is graded after a cancellation"


@pytest.mark.parametrize("grader", [GatedGrader, StubbornGrader])
async def test_cancel_while_grading_keeps_the_workflow(grader: type[Grader]) -> None:
    gate = Gate()
    backend = LocalBackend(workflow=QuickWorkflow, grader=grader, grader_config=grader_config(gate))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(backend.execute(request()))
        await until(lambda: gate.inside == 1)
        assert await backend.cancel_rollouts(prefix="r") == {"r": "cancelled_running"}
    outcome = task.result()
    assert outcome.workflow.status is RolloutStatus.SUCCESS
    assert outcome.result.status is RolloutStatus.CANCELLED
    assert outcome.result.sample is not None
    assert outcome.result.sample.reward is None
    assert task.cancelling() == 0


async def test_cancellation_from_outside_passes_and_frees_the_id() -> None:
    gate = Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate, 1))
    task = asyncio.ensure_future(backend.execute(request(grade=False)))
    await until(lambda: gate.inside == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.opened.set()
    assert (await backend.execute(request(grade=False))).result.status is RolloutStatus.SUCCESS


async def test_shutdown_ends_what_runs_and_refuses_more() -> None:
    gate = Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate, 1))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(backend.execute(request(f"r{n}"))) for n in range(3)]
        await until(lambda: gate.inside == 1)
        await backend.shutdown()
    assert {task.result().result.status for task in tasks} == {RolloutStatus.CANCELLED}
    with pytest.raises(BackendClosedError, match="shut down"):
        await backend.execute(request("late"))
    await backend.shutdown()
