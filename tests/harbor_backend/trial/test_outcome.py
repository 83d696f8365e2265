"""What Harbor reports of a workflow's trial, and the outcome that a caller gets of it."""

import math
from pathlib import Path
from typing import Any

import pytest
from harbor.models.verifier.result import VerifierResult

from harbor_backend.program.program import Program
from harbor_backend.trial.outcome import outcome_of
from harbor_backend.trial.sample_reward import NOT_FINITE, SEVERAL
from osmosis_ai.rollout import ExecutionResult, RolloutSample
from osmosis_ai.rollout.execution import NO_GRADER
from tests.harbor_backend.reports import error, reached, step, timing, trial_result
from tests.harbor_backend.specs import living, make_spec, native_program, workflow_program
from tests.harbor_backend.trial.outcomes import (
    AGENT,
    GRADED,
    INFRASTRUCTURE,
    TIMEOUT,
    VALIDATION,
    VERIFIED,
    WORKED,
    Case,
    assert_outcome,
    failed,
    no_reward,
    sample,
    success,
)


def rewarded(rewards: dict[str, float | int] | None, graded: ExecutionResult) -> Case:
    """A workflow that worked, and the task's tests, which gave these rewards."""
    harbor = {**VERIFIED, "verifier_result": VerifierResult(rewards=rewards)}
    return Case(WORKED, graded, workflow=WORKED, harbor=harbor)


def not_finite(names: str) -> ExecutionResult:
    return failed(VALIDATION, f"{NOT_FINITE} ({names})", sample())


REWARDS = {
    "a reward": rewarded({"reward": 0.25}, success(sample(reward=0.25))),
    "a reward of zero": rewarded({"reward": 0}, success(sample(reward=0.0))),
    "a negative reward": rewarded({"reward": -1.5}, success(sample(reward=-1.5))),
    "a whole number becomes a float": rewarded({"reward": 1}, success(sample(reward=1.0))),
    "several keys are all kept": rewarded(
        {"reward": 1, "style": 0.5},
        success(sample(reward=1.0, extra_fields={"rewards": {"reward": 1, "style": 0.5}})),
    ),
    "the only one is the reward, whatever its name": rewarded(
        {"score": 0.25},
        success(sample(reward=0.25, extra_fields={"rewards": {"score": 0.25}})),
    ),
    "of several, none is made the reward, and all are kept": rewarded(
        {"score": 1, "style": 0.5},
        failed(
            VALIDATION,
            f"{SEVERAL} ('score', 'style')",
            sample(extra_fields={"rewards": {"score": 1, "style": 0.5}}),
        ),
    ),
    "no keys": rewarded({}, no_reward()),
    "not a number": rewarded({"reward": math.nan}, not_finite("'reward'")),
    "no end": rewarded({"reward": math.inf}, not_finite("'reward'")),
    "larger than any float": rewarded({"reward": 10**400}, not_finite("'reward'")),
    "one beside it that is": rewarded({"reward": 1, "n": -(10**400)}, not_finite("'n'")),
    "the tests ran and wrote nothing": rewarded(None, no_reward()),
}

GRADING = {
    "the SDK grader's result is the grader's": Case(WORKED, GRADED, workflow=WORKED, grader=GRADED),
    "also where Harbor has a reward": Case(
        WORKED,
        GRADED,
        workflow=WORKED,
        grader=GRADED,
        harbor={**VERIFIED, "verifier_result": VerifierResult(rewards={"reward": 1.0})},
    ),
    "also where Harbor gave up after it": Case(
        WORKED,
        GRADED,
        workflow=WORKED,
        grader=GRADED,
        harbor={**VERIFIED, "exception_info": error("VerifierTimeoutError")},
    ),
    "nothing grades": Case(
        WORKED, failed(VALIDATION, NO_GRADER, sample()), workflow=WORKED, harbor=reached("agent")
    ),
    "a verifier that was timed and left nothing": Case(WORKED, no_reward(), workflow=WORKED),
    "nobody asked for grading": Case(
        WORKED,
        workflow=WORKED,
        request={"grade": False},
        harbor={**VERIFIED, "verifier_result": VerifierResult(rewards={"reward": 1.0})},
    ),
    "a failed workflow is not graded": Case(
        failed(AGENT), workflow=failed(AGENT), grader=GRADED, harbor=reached("agent")
    ),
    "a workflow without a sample is graded all the same": Case(
        success(None),
        success(RolloutSample(reward=1.0, label="blue")),
        workflow=success(None),
        harbor={**VERIFIED, "verifier_result": VerifierResult(rewards={"reward": 1.0})},
    ),
    "the verifier ran out of time": Case(
        WORKED,
        failed(TIMEOUT, "too long", sample()),
        workflow=WORKED,
        harbor={**VERIFIED, "exception_info": error("VerifierTimeoutError", message="too long")},
    ),
    "the tests wrote no reward file": Case(
        WORKED,
        failed(VALIDATION, made=sample()),
        workflow=WORKED,
        harbor={**VERIFIED, "exception_info": error("RewardFileNotFoundError")},
    ),
    "the sandbox was lost while the tests ran": Case(
        WORKED,
        failed(INFRASTRUCTURE, made=sample()),
        workflow=WORKED,
        harbor={**VERIFIED, "exception_info": error("SandboxLostError")},
    ),
    "an exception without a text": Case(
        WORKED,
        failed(VALIDATION, "RewardFileEmptyError", sample()),
        workflow=WORKED,
        harbor={**VERIFIED, "exception_info": error("RewardFileEmptyError", message="")},
    ),
    "a reward counts, whatever ended the trial": Case(
        WORKED,
        success(sample(reward=1.0)),
        workflow=WORKED,
        harbor={
            **VERIFIED,
            "exception_info": error("SandboxLostError"),
            "verifier_result": VerifierResult(rewards={"reward": 1.0}),
        },
    ),
}


def steps(*results: Any) -> dict[str, Any]:
    """A trial of several steps, which Harbor times one by one."""
    return {**reached("agent_setup"), "step_results": list(results)}


STEPS = {
    "steps with a reward together": Case(
        WORKED,
        success(sample(reward=0.5)),
        workflow=WORKED,
        harbor={
            **steps(step("one", rewards={"reward": 1}), step("two", rewards={"reward": 0})),
            "verifier_result": VerifierResult(rewards={"reward": 0.5}),
        },
    ),
    "the first exception of a step says why there is none": Case(
        WORKED,
        failed(TIMEOUT, "first", sample()),
        workflow=WORKED,
        harbor=steps(
            step("one", rewards={"reward": 1}),
            step("two", exception_info=error("VerifierTimeoutError", message="first")),
            step("three", exception_info=error("SandboxLostError", message="second")),
        ),
    ),
    "the trial's own goes before the steps'": Case(
        WORKED,
        failed(INFRASTRUCTURE, "of the trial", sample()),
        workflow=WORKED,
        harbor={
            **steps(step("one", exception_info=error("VerifierTimeoutError"))),
            "exception_info": error("SandboxLostError", message="of the trial"),
        },
    ),
    "what a workflow's step raises is the sandbox's": Case(
        WORKED,
        failed(INFRASTRUCTURE, made=sample()),
        workflow=WORKED,
        harbor=steps(step("one", exception_info=error("OSError"))),
    ),
    "steps that nobody graded": Case(
        WORKED,
        failed(VALIDATION, NO_GRADER, sample()),
        workflow=WORKED,
        harbor=steps(step("one"), step("two")),
    ),
}

NEVER_RAN = {
    "Harbor refuses the task": ("ValueError", "setup", VALIDATION),
    "Harbor broke before anything": ("OSError", "setup", INFRASTRUCTURE),
    "its image does not build": ("SandboxBuildFailedError", "environment_setup", VALIDATION),
    "its sandbox does not start": ("SandboxStartError", "environment_setup", INFRASTRUCTURE),
    "nor within Harbor's time": (
        "EnvironmentStartTimeoutError",
        "environment_setup",
        INFRASTRUCTURE,
    ),
    "the engine failed": ("EngineError", "environment_setup", INFRASTRUCTURE),
    "its model is not reached": ("ModelUnreachableError", "agent_setup", INFRASTRUCTURE),
    "its setup takes too long": ("AgentSetupTimeoutError", "agent_setup", INFRASTRUCTURE),
    "the sandbox was lost": ("SandboxLostError", "agent", INFRASTRUCTURE),
    "the connection broke": ("ConnectionResetError", "agent", INFRASTRUCTURE),
    "Harbor's backstop ended it": ("AgentTimeoutError", "agent", TIMEOUT),
}
"""What ends a workflow's trial without a result of the workflow; no grader follows."""


@pytest.mark.parametrize("case", REWARDS)
async def test_what_the_tasks_tests_wrote(case: str, tmp_path: Path) -> None:
    await assert_outcome(REWARDS[case], tmp_path)


@pytest.mark.parametrize("case", GRADING)
async def test_who_graded_and_how_that_ended(case: str, tmp_path: Path) -> None:
    await assert_outcome(GRADING[case], tmp_path)


@pytest.mark.parametrize("case", STEPS)
async def test_tasks_of_several_steps(case: str, tmp_path: Path) -> None:
    await assert_outcome(STEPS[case], tmp_path)


@pytest.mark.parametrize("case", NEVER_RAN)
async def test_a_workflow_that_brought_no_result(case: str, tmp_path: Path) -> None:
    kind, phase, category = NEVER_RAN[case]
    harbor = {**reached(phase), "exception_info": error(kind)}
    await assert_outcome(Case(failed(category), harbor=harbor), tmp_path)


async def test_a_workflow_is_not_asked_of_harbor_when_it_has_a_result(tmp_path: Path) -> None:
    """What its hooks remembered wins over whatever Harbor says ended the trial."""
    broke = failed(AGENT, "its own words", sample())
    harbor = {**reached("agent"), "exception_info": error("WorkflowFailedError")}
    await assert_outcome(Case(broke, workflow=broke, harbor=harbor), tmp_path)


@pytest.mark.parametrize("program", [workflow_program(), native_program("oracle")])
async def test_a_step_whose_sandbox_was_lost_makes_no_reward(
    program: Program, tmp_path: Path
) -> None:
    lost = step("two", exception_info=error("SandboxLostError"), agent_execution=timing(20, 25))
    harbor = steps(step("one", rewards={"reward": 1.0}), lost)
    async with living(make_spec(tmp_path, program=program)) as trial:
        trial.rollout.workflow = WORKED if program.native_agent is None else None
        outcome = outcome_of(trial, trial_result(tmp_path, rewards={"reward": 1.0}, **harbor))
    assert outcome.result.err_category is INFRASTRUCTURE
