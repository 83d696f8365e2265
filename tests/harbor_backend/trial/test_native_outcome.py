"""The outcome of a trial whose agent Harbor itself ran."""

import json
from pathlib import Path
from typing import Any

import pytest
from harbor.models.agent.context import AgentContext
from harbor.models.verifier.result import VerifierResult

from harbor_backend.core.trial import Trial
from harbor_backend.trial.outcome import native_workflow
from osmosis_ai.rollout import ExecutionResult, RolloutSample
from tests.harbor_backend.reports import error, reached, timing, trial_result
from tests.harbor_backend.specs import living, make_spec, native_program
from tests.harbor_backend.trial.outcomes import (
    AGENT,
    ASKED,
    GRADED,
    INFRASTRUCTURE,
    TALK,
    TIMEOUT,
    VERIFIED,
    Case,
    assert_outcome,
    failed,
    success,
)

NATIVE = {
    "the first message is an endpointless agent's sample": Case(
        success(RolloutSample(messages=ASKED, label="blue")),
        success(RolloutSample(messages=ASKED, label="blue", reward=1.0)),
        program=native_program("oracle"),
        harbor={**VERIFIED, "verifier_result": VerifierResult(rewards={"reward": 1.0})},
    ),
    "without a prompt it is the task's name": Case(
        success(RolloutSample(messages=[{"role": "user", "content": "task"}], label="blue")),
        program=native_program("nop"),
        request={"prompt": [], "grade": False},
    ),
    "what it used is in the sample": Case(
        success(
            RolloutSample(
                messages=ASKED,
                label="blue",
                metrics={"input_tokens": 7, "output_tokens": 0, "cost_usd": 0.5},
            )
        ),
        program=native_program("nop"),
        request={"grade": False},
        harbor={
            **VERIFIED,
            "agent_result": AgentContext(n_input_tokens=7, n_output_tokens=0, cost_usd=0.5),
        },
    ),
    "an agent's failure leaves no sample": Case(
        failed(AGENT, "exit code 1"),
        program=native_program("oracle"),
        harbor={
            **reached("agent"),
            "exception_info": error("NonZeroAgentExitCodeError", message="exit code 1"),
        },
    ),
    "nor does its deadline": Case(
        failed(TIMEOUT),
        program=native_program("oracle"),
        harbor={**reached("agent"), "exception_info": error("AgentTimeoutError")},
    ),
    "a verifier's failure is the grader's": Case(
        success(RolloutSample(messages=ASKED, label="blue")),
        failed(TIMEOUT, made=RolloutSample(messages=ASKED, label="blue")),
        program=native_program("oracle"),
        harbor={**VERIFIED, "exception_info": error("VerifierTimeoutError")},
    ),
    "a sandbox that is lost is not the agent's fault": Case(
        failed(INFRASTRUCTURE),
        program=native_program("oracle"),
        harbor={**reached("agent"), "exception_info": error("SandboxLostError")},
    ),
    "a relay that does not start is not either": Case(
        failed(INFRASTRUCTURE),
        program=native_program("oracle"),
        harbor={**reached("agent"), "exception_info": error("ModelRouteError")},
    ),
}

DOCUMENT = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {"name": "terminus-2", "version": "2"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "How many?"},
        {"step_id": 2, "source": "agent", "message": "Four."},
    ],
}
LEFT = RolloutSample(
    messages=TALK,
    label="blue",
    extra_fields={"agent": {"name": "terminus-2", "version": "2"}},
)
TRAJECTORY = {"agent/trajectory.json": json.dumps(DOCUMENT)}
NO_DOCUMENT = (
    "No sample of agent 'terminus-2': exactly one agent/trajectory.json is needed, and the trial "
    "has 0; does the agent write ATIF?"
)

WITH_A_MODEL = {
    "the trajectory that it left is the sample": Case(
        success(LEFT),
        success(LEFT.model_copy(update={"reward": 1.0})),
        program=native_program("terminus-2"),
        harbor={**VERIFIED, "verifier_result": VerifierResult(rewards={"reward": 1.0})},
        files=TRAJECTORY,
    ),
    "one that failed keeps what it left": Case(
        failed(TIMEOUT, made=LEFT),
        program=native_program("terminus-2"),
        harbor={**reached("agent"), "exception_info": error("AgentTimeoutError")},
        files=TRAJECTORY,
    ),
    "what it raised by itself is its own": Case(
        failed(AGENT, made=LEFT),
        program=native_program("terminus-2"),
        harbor={**reached("agent"), "exception_info": error("OSError")},
        files=TRAJECTORY,
    ),
    "without a trajectory a reward has no sample": Case(
        success(None),
        success(RolloutSample(reward=1.0, label="blue")),
        program=native_program("terminus-2"),
        harbor={**VERIFIED, "verifier_result": VerifierResult(rewards={"reward": 1.0})},
        notes=[NO_DOCUMENT],
    ),
    "one that failed may have left nothing": Case(
        failed(AGENT),
        program=native_program("terminus-2"),
        harbor={**reached("agent"), "exception_info": error("RuntimeError")},
        notes=[NO_DOCUMENT],
    ),
    "a grader of ours may grade it": Case(
        success(LEFT),
        GRADED,
        program=native_program("terminus-2", grader=True),
        grader=GRADED,
        files=TRAJECTORY,
    ),
}


@pytest.mark.parametrize("case", NATIVE)
async def test_agents_without_a_model(case: str, tmp_path: Path) -> None:
    await assert_outcome(NATIVE[case], tmp_path)


@pytest.mark.parametrize("case", WITH_A_MODEL)
async def test_agents_of_harbors_with_a_model(case: str, tmp_path: Path) -> None:
    await assert_outcome(WITH_A_MODEL[case], tmp_path)


async def test_a_native_workflow_ends_before_it_is_verified(tmp_path: Path) -> None:
    """It is asked for when verification begins, and says the same afterwards."""

    def ended(trial: Trial, **fields: Any) -> ExecutionResult:
        return native_workflow(trial, trial_result(tmp_path, **fields))

    async with living(make_spec(tmp_path, agent="nop", request={"prompt": ASKED})) as trial:
        now = ended(trial, **{**VERIFIED, "verifier": timing(30)})
        late = ended(trial, **VERIFIED, exception_info=error("VerifierTimeoutError"))
        assert now == late == success(RolloutSample(messages=ASKED, label="blue"))
