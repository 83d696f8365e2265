"""Every fault is reported with its phase and category, and leaves no sandbox."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from osmosis_ai.rollout import RolloutErrorCategory, RolloutStatus
from tests.harbor_backend.places.skypilot.with_sky.conftest import (
    WHOSE,
    MakeBackend,
    in_names,
    own_sandboxes,
    run,
)
from tests.harbor_backend.rollouts.conftest import until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]
of_both = pytest.mark.parametrize("whose", WHOSE)

INFRASTRUCTURE = RolloutErrorCategory.INFRASTRUCTURE_ERROR
TIMEOUT = RolloutErrorCategory.TIMEOUT
RUNNER = "container.runner"


@dataclass(frozen=True)
class Expected:
    """A fault's rule, and where a rollout that it hits ends."""

    rule: dict[str, Any]
    phase: str
    category: RolloutErrorCategory
    said: str
    graded: bool = False


FAULTS = {
    "refused": Expected(
        {"fault": "create-refused"}, "environment_setup", INFRASTRUCTURE, "injected: no capacity"
    ),
    "lost-after-creating": Expected(
        {"fault": "create-lost"}, "environment_setup", INFRASTRUCTURE, "injected: the answer"
    ),
    "connection": Expected(
        {"fault": "exec-lost", "command": f"{RUNNER} agent"}, "agent", INFRASTRUCTURE, "was lost"
    ),
    "connection-at-start": Expected(
        {"fault": "exec-lost", "command": "mkdir"}, "environment_setup", INFRASTRUCTURE, "was lost"
    ),
    "connection-while-grading": Expected(
        {"fault": "exec-lost", "command": f"{RUNNER} grader"},
        "verifier",
        INFRASTRUCTURE,
        "was lost",
        graded=True,
    ),
    "overrun": Expected(
        {"fault": "exec-overrun", "command": f"{RUNNER} agent"},
        "agent",
        TIMEOUT,
        "Workflow exceeded its 2s deadline",
    ),
}


@of_both
@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_is_reported_by_phase_and_category(
    name: str, whose: str, make_backend: MakeBackend
) -> None:
    from sky_sandbox_double import faults

    expected = FAULTS[name]
    backend = make_backend(whose=whose, agent="adversary:Answer", grader="adversary:LookAround")
    settings = {**expected.rule, "fault": faults.Fault(expected.rule["fault"])}
    rule = faults.inject(faults.Rule(**settings, name=in_names(name)))
    outcome = await run(backend, name, agent_timeout_sec=2 if name == "overrun" else None)
    assert rule.hits == 1
    if expected.graded:
        assert outcome.grader is not None
        assert outcome.workflow.status is RolloutStatus.SUCCESS
    failed = outcome.grader if expected.graded and outcome.grader else outcome.workflow
    assert failed.status is RolloutStatus.FAILURE, outcome
    assert failed.err_category is expected.category, failed
    assert expected.said in str(failed.err_message)
    assert failed.extra_fields["phase"] == expected.phase
    assert own_sandboxes() == []


@of_both
async def test_a_creation_slower_than_its_limit(
    whose: str, make_backend: MakeBackend, make_task: Any
) -> None:
    from sky_sandbox_double import faults

    task = make_task(toml="[environment]\nbuild_timeout_sec = 3.0\n")
    backend = make_backend(whose=whose, tasks_dir=task, agent="adversary:Answer")
    await backend.prewarm()
    faults.inject(faults.Rule(faults.Fault.CREATE_SLOW, name=in_names("slow"), seconds=4))
    outcome = await run(backend, "slow")
    assert outcome.workflow.err_category is INFRASTRUCTURE, outcome.workflow
    assert outcome.workflow.extra_fields["harbor_exception_type"] == "EnvironmentStartTimeoutError"
    assert outcome.workflow.extra_fields["phase"] == "environment_setup"
    await backend.shutdown()
    assert own_sandboxes() == []


@of_both
async def test_an_ending_that_fails_is_tried_again(whose: str, make_backend: MakeBackend) -> None:
    from sky_sandbox_double import faults

    backend = make_backend(whose=whose, agent="adversary:Answer")
    rule = faults.inject(faults.Rule(faults.Fault.TERMINATE_FAILS, times=2))
    outcome = await run(backend)
    assert outcome.workflow.status is RolloutStatus.SUCCESS
    assert outcome.workflow.extra_fields["notes"] == []
    assert rule.hits == 2
    assert own_sandboxes() == []


@of_both
async def test_an_ending_that_keeps_failing_is_noted_and_tried_at_shutdown(
    whose: str, make_backend: MakeBackend
) -> None:
    from sky_sandbox_double import faults

    backend = make_backend(whose=whose, agent="adversary:Answer")
    faults.inject(faults.Rule(faults.Fault.TERMINATE_FAILS, times=10**6))
    outcome = await run(backend)
    assert outcome.workflow.status is RolloutStatus.SUCCESS
    (note,) = outcome.workflow.extra_fields["notes"]
    (name,) = own_sandboxes()
    assert name in note
    assert "the reaper takes it" in note
    faults.clear()
    await backend.shutdown()
    assert own_sandboxes() == []


@of_both
async def test_a_rollout_cancelled_while_its_sandbox_is_created_leaves_none(
    whose: str, make_backend: MakeBackend
) -> None:
    from sky_sandbox_double import faults

    backend = make_backend(whose=whose, agent="adversary:Answer")
    await backend.prewarm()
    rule = faults.inject(faults.Rule(faults.Fault.CREATE_SLOW, seconds=3))
    running = asyncio.create_task(run(backend))
    await until(lambda: rule.hits)
    assert await backend.cancel_rollouts(ids=["r-1"]) == {"r-1": "cancelled_running"}
    outcome = await asyncio.wait_for(running, 2)
    assert outcome.workflow.status is RolloutStatus.CANCELLED
    await backend.shutdown()
    assert own_sandboxes() == []


@of_both
async def test_a_rollout_cancelled_while_its_agent_runs_leaves_none(
    whose: str, make_backend: MakeBackend
) -> None:
    backend = make_backend(whose=whose, agent="adversary:Wait")
    running = asyncio.create_task(run(backend))
    await until(own_sandboxes, 120)
    await backend.cancel_rollouts(all=True)
    assert (await running).workflow.status is RolloutStatus.CANCELLED
    await until(lambda: own_sandboxes() == [])


async def test_the_session_is_closed_with_the_last_backend(make_backend: MakeBackend) -> None:
    from sky_sandbox_double import sdk

    first, second = make_backend(agent="adversary:Answer"), make_backend(agent="adversary:Answer")
    await run(first, "r-1")
    await run(second, "r-2")
    before = sdk.closings
    await first.shutdown()
    assert sdk.closings == before
    await second.shutdown()
    assert sdk.closings == before + 1
