"""Slots of both phases, the queue's bound, and the time spent queued."""

import asyncio

import pytest

from osmosis_ai.rollout import LocalBackend, RolloutContext, RolloutErrorCategory, RolloutStatus
from tests.local_backend.gates import (
    Gate,
    GatedGrader,
    GatedWorkflow,
    QuickGrader,
    QuickWorkflow,
    grader_config,
    request,
    until,
    workflow_config,
)


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (3, 3), (None, 6)])
async def test_workflows_at_once(limit: int | None, most: int) -> None:
    gate = Gate()
    backend = LocalBackend(
        workflow=GatedWorkflow, workflow_config=workflow_config(gate, limit), grader=QuickGrader
    )
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(backend.execute(request(f"r{n}"))) for n in range(6)]
        await until(lambda: gate.inside == most)
        assert backend.health()["concurrency"] == {
            "max_concurrent": limit,
            "queued": 6 - most,
            "running": most,
        }
        gate.opened.set()
    assert gate.most == most
    assert gate.entered == 6
    assert {task.result().result.status for task in tasks} == {RolloutStatus.SUCCESS}


async def test_gradings_have_a_limit_of_their_own_and_free_the_workflow_slot() -> None:
    workflows, gradings = Gate(), Gate()
    workflows.opened.set()
    backend = LocalBackend(
        workflow=GatedWorkflow,
        workflow_config=workflow_config(workflows, 1),
        grader=GatedGrader,
        grader_config=grader_config(gradings, 2),
    )
    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(backend.execute(request(f"r{number}")))
        await until(lambda: workflows.entered == 5 and gradings.inside == 2)
        health = backend.health()
        assert health["concurrency"]["running"] == 0
        assert health["grading"] == {"max_concurrent": 2, "queued": 3, "running": 2}
        gradings.opened.set()
    assert workflows.most == 1
    assert gradings.most == 2
    assert gradings.entered == 5


async def test_gradings_without_a_config_are_unlimited() -> None:
    workflows, gradings = Gate(), Gate()
    workflows.opened.set()
    config = grader_config(gradings)
    backend = LocalBackend(
        workflow=GatedWorkflow,
        workflow_config=workflow_config(workflows, 2),
        grader=GatedGrader,
        grader_config=config,
    )
    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(backend.execute(request(f"r{number}")))
        await until(lambda: gradings.inside == 6)
        gradings.opened.set()


async def test_queue_bound() -> None:
    gate = Gate()
    backend = LocalBackend(
        workflow=GatedWorkflow, workflow_config=workflow_config(gate, 1), max_queue_depth=2
    )
    async with asyncio.TaskGroup() as group:
        for number in range(3):
            assert backend.has_capacity()
            group.create_task(backend.execute(request(f"r{number}", grade=False)))
            await until(lambda number=number: backend.health()["concurrency"]["queued"] == number)  # type: ignore[misc]
        assert not backend.has_capacity()
        gate.opened.set()
    assert backend.has_capacity()


async def test_without_a_bound_there_is_always_capacity() -> None:
    gate = Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate, 1))
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(backend.execute(request(f"r{number}", grade=False)))
        await until(lambda: backend.health()["concurrency"]["queued"] == 19)
        assert backend.has_capacity()
        gate.opened.set()


async def test_time_queued_counts_against_the_agent_and_is_named() -> None:
    gate = Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate, 1))
    async with asyncio.TaskGroup() as group:
        group.create_task(backend.execute(request("first", grade=False)))
        await until(lambda: gate.inside == 1)
        late = group.create_task(
            backend.execute(request("late", grade=False, agent_timeout_sec=0.2))
        )
        patient = group.create_task(
            backend.execute(request("patient", grade=False, agent_timeout_sec=60))
        )
        await until(lambda: backend.health()["concurrency"]["queued"] == 2)
        await asyncio.sleep(0.3)
        gate.opened.set()

    result = late.result().result
    assert result.err_category is RolloutErrorCategory.TIMEOUT
    assert result.err_message is not None
    assert result.err_message.startswith("Workflow exceeded its 0.2s deadline (0.")
    assert result.err_message.endswith("s of it spent queued)")
    assert patient.result().result.status is RolloutStatus.SUCCESS
    assert gate.entered == 2


async def test_time_queued_for_grading_is_not_charged() -> None:
    gate = Gate()
    backend = LocalBackend(
        workflow=QuickWorkflow, grader=GatedGrader, grader_config=grader_config(gate, 1)
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(backend.execute(request("first")))
        await until(lambda: gate.inside == 1)
        second = group.create_task(backend.execute(request("second", grader_timeout_sec=0.25)))
        await until(lambda: backend.health()["grading"]["queued"] == 1)
        await asyncio.sleep(0.3)
        gate.opened.set()
    assert second.result().result.status is RolloutStatus.SUCCESS


async def test_a_slot_is_freed_by_failure_and_by_deadline() -> None:
    gate = Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate, 1))
    for number in range(3):
        outcome = await backend.execute(request(f"r{number}", agent_timeout_sec=0.02))
        assert outcome.result.err_category is RolloutErrorCategory.TIMEOUT
    assert backend.health()["concurrency"]["running"] == 0


async def test_rollouts_may_run_side_by_side_in_one_ambient_context() -> None:
    gate = Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate))
    with RolloutContext(rollout_id="ambient"):
        async with asyncio.TaskGroup() as group:
            first = group.create_task(
                backend.execute(request("a", grade=False, agent_timeout_sec=0.05))
            )
            second = group.create_task(backend.execute(request("b", grade=False)))
            await until(first.done)
            gate.opened.set()
    assert first.result().result.err_category is RolloutErrorCategory.TIMEOUT
    assert second.result().result.status is RolloutStatus.SUCCESS
