"""Agents that failed, and whose work the task's own tests graded all the same."""

from pathlib import Path
from typing import Any

import pytest
from harbor.models.verifier.result import VerifierResult

from harbor_backend.trial.outcome import ended_workflow, outcome_of
from harbor_backend.trial.sample_reward import NO_REWARD
from osmosis_ai.rollout import ExecutionResult, RolloutSample
from osmosis_ai.rollout.types.status import RolloutErrorCategory
from tests.harbor_backend.reports import error, reached, step, timing, trial_result
from tests.harbor_backend.specs import living, make_spec, native_program, workflow_program
from tests.harbor_backend.trial.outcomes import (
    AGENT,
    ASKED,
    GRADED,
    INFRASTRUCTURE,
    TIMEOUT,
    VALIDATION,
    VERIFIED,
    Case,
    assert_outcome,
    failed,
    noted,
    sample,
    success,
)

HTTP = RolloutErrorCategory.HTTP_ERROR
EMPTY = RolloutSample(label="blue")
LATE = failed(TIMEOUT, "too late")


def native(kind: str, **harbor: Any) -> dict[str, Any]:
    """A native agent that ended with this exception before its verifier began."""
    raised = error(kind, message="too late", seconds=29)
    return {
        "program": native_program("oracle"),
        "harbor": {**VERIFIED, "exception_info": raised, **harbor},
    }


def rewards(**values: float) -> dict[str, Any]:
    return {"verifier_result": VerifierResult(rewards=values)}


def scored(failure: ExecutionResult, of: RolloutSample, reward: float) -> ExecutionResult:
    return noted(success(of.model_copy(update={"reward": reward})), failure)


NATIVE = {
    "its deadline": Case(
        noted(success(None), LATE),
        scored(LATE, EMPTY, 1.0),
        **native("AgentTimeoutError", **rewards(reward=1.0)),
    ),
    "a reward of 0 is one": Case(
        noted(success(None), LATE),
        scored(LATE, EMPTY, 0.0),
        **native("AgentTimeoutError", **rewards(reward=0)),
    ),
    **{
        name: Case(
            noted(success(None), failed(AGENT, "too late")),
            scored(failed(AGENT, "too late"), EMPTY, 0.5),
            **native(name, **rewards(reward=0.5)),
        )
        for name in (
            "NonZeroAgentExitCodeError",
            "AgentSafetyRefusalError",
            "ContextWindowExceededError",
            "OutputTokenExceededError",
            "ContextLengthExceededError",
        )
    },
    "its model's provider: what it left says nothing of it": Case(
        failed(HTTP, "too late"), **native("ApiRateLimitError", **rewards(reward=0.0))
    ),
    "its sandbox: nor does this": Case(
        failed(INFRASTRUCTURE, "too late"), **native("SandboxLostError", **rewards(reward=0.0))
    ),
    "tests that wrote nothing: the agent's failure comes first": Case(
        noted(success(None), LATE),
        failed(TIMEOUT, f"too late. What it left has no reward: {NO_REWARD}", EMPTY),
        **native("AgentTimeoutError"),
    ),
    "nobody asked for grading": Case(
        failed(TIMEOUT, "too late"),
        request={"grade": False},
        program=native_program("oracle"),
        harbor={
            **reached("agent"),
            "exception_info": error("AgentTimeoutError", message="too late"),
        },
    ),
    "it was not verified after all": Case(
        failed(TIMEOUT, "too late"),
        program=native_program("oracle"),
        harbor={
            **reached("agent"),
            "exception_info": error("AgentTimeoutError", message="too late"),
        },
    ),
}

BROKE = failed(VALIDATION, "it broke", sample())
ENDED = error("NonZeroAgentExitCodeError", seconds=29)
WORKFLOWS = {
    "its tests' reward counts beside its failure": Case(
        noted(success(sample()), BROKE),
        scored(BROKE, sample(), 0.25),
        workflow=BROKE,
        harbor={**VERIFIED, "exception_info": ENDED, **rewards(reward=0.25)},
    ),
    "one that left no sample has its label": Case(
        noted(success(None), LATE),
        scored(LATE, EMPTY, 1.0),
        workflow=LATE,
        harbor={**VERIFIED, "exception_info": ENDED, **rewards(reward=1)},
    ),
    "a verifier that the infrastructure lost": Case(
        noted(success(None), LATE),
        failed(INFRASTRUCTURE, "gone (the agent had failed before: too late)", EMPTY),
        workflow=LATE,
        harbor={**VERIFIED, "exception_info": error("SandboxLostError", message="gone")},
    ),
    "a verifier that failed by itself": Case(
        noted(success(None), LATE),
        failed(TIMEOUT, "too late. What it left has no reward: no file", EMPTY),
        workflow=LATE,
        harbor={**VERIFIED, "exception_info": error("RewardFileNotFoundError", message="no file")},
    ),
    "the service that it called": Case(
        failed(HTTP),
        workflow=failed(HTTP),
        harbor={**VERIFIED, "exception_info": ENDED, **rewards(reward=0.0)},
    ),
}


def steps(*results: Any, **fields: Any) -> dict[str, Any]:
    return {**reached("agent_setup"), "step_results": list(results), **fields}


def late_step(name: str, reward: float) -> Any:
    """A step whose agent was late, and which was verified all the same."""
    return step(
        name,
        rewards={"reward": reward},
        exception_info=error("AgentTimeoutError", message="too late", seconds=29),
        agent_execution=timing(20, 29),
        verifier=timing(30, 35),
    )


STEPS = {
    "a step's failure is noted beside the reward of all": Case(
        noted(success(None), LATE),
        scored(LATE, EMPTY, 0.5),
        program=native_program("oracle"),
        harbor=steps(
            late_step("one", 1.0),
            step("two", rewards={"reward": 0}, agent_execution=timing(40), verifier=timing(50)),
            **rewards(reward=0.5),
        ),
    ),
    "also a workflow's": Case(
        noted(success(sample()), BROKE),
        scored(BROKE, sample(), 1.0),
        workflow=BROKE,
        harbor=steps(late_step("one", 1.0), **rewards(reward=1)),
    ),
    "a verifier's failure in a step is the grader's": Case(
        success(RolloutSample(messages=ASKED, label="blue")),
        failed(VALIDATION, made=RolloutSample(messages=ASKED, label="blue")),
        program=native_program("oracle"),
        harbor=steps(
            step(
                "one",
                exception_info=error("IsADirectoryError"),
                agent_execution=timing(20),
                verifier=timing(30),
            ),
        ),
    ),
    "a verifier's failure in a step is not the agent's": Case(
        success(RolloutSample(messages=ASKED, label="blue")),
        success(RolloutSample(messages=ASKED, label="blue", reward=1.0)),
        program=native_program("oracle"),
        harbor=steps(
            step("one", rewards={"reward": 1}, agent_execution=timing(0), verifier=timing(10)),
            step(
                "two",
                exception_info=error("RewardFileNotFoundError"),
                agent_execution=timing(20),
                verifier=timing(30),
            ),
            **rewards(reward=1.0),
        ),
    ),
}

CASES = {**NATIVE, **WORKFLOWS, **STEPS}


@pytest.mark.parametrize("case", CASES)
async def test_what_it_left_is_graded(case: str, tmp_path: Path) -> None:
    await assert_outcome(CASES[case], tmp_path)


async def test_an_sdk_grader_is_not_asked_of_a_workflow_that_failed(tmp_path: Path) -> None:
    spec = make_spec(tmp_path, program=workflow_program(grader=True), has_tests=False)
    async with living(spec) as trial:
        trial.rollout.workflow, trial.results.grader = LATE, GRADED
        harbor = {**VERIFIED, "exception_info": error("WorkflowFailedError", seconds=29)}
        outcome = outcome_of(trial, trial_result(tmp_path, **harbor))
    assert (outcome.workflow, outcome.grader) == (LATE, None)


async def test_it_is_told_as_verification_begins_as_it_is_afterwards(tmp_path: Path) -> None:
    raised = error("AgentTimeoutError", message="too late", seconds=29)
    async with living(make_spec(tmp_path, program=native_program("oracle"))) as trial:
        before = trial_result(tmp_path, **reached("agent"), exception_info=raised)
        told = ended_workflow(trial, before, verified=True)
        assert told == noted(success(None), LATE)
        trial.rollout.workflow = told
        harbor = {**VERIFIED, "exception_info": raised}
        outcome = outcome_of(trial, trial_result(tmp_path, **harbor, rewards={"reward": 1.0}))
    assert outcome.workflow == told
    assert outcome.result == scored(LATE, EMPTY, 1.0)


@pytest.mark.parametrize(
    ("kind", "category", "message"),
    [
        ("SandboxLostError", INFRASTRUCTURE, "gone (the agent had failed before: too late)"),
        ("RuntimeError", INFRASTRUCTURE, "gone (the agent had failed before: too late)"),
        ("RewardFileEmptyError", TIMEOUT, "too late. What it left has no reward: gone"),
    ],
)
async def test_what_ended_the_verifier_is_told_though_harbor_keeps_the_agents_exception(
    kind: str, category: RolloutErrorCategory, message: str, tmp_path: Path
) -> None:
    async with living(make_spec(tmp_path, program=native_program("oracle"))) as trial:
        trial.results.verifier_error = error(kind, message="gone", seconds=31)
        late = error("AgentTimeoutError", message="too late", seconds=29)
        outcome = outcome_of(trial, trial_result(tmp_path, **VERIFIED, exception_info=late))
    assert outcome.result == failed(category, message, EMPTY)
    assert not outcome.result.is_scored
