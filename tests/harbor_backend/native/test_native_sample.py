"""What becomes of the trajectory documents that a trial leaves."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from harbor.models.agent.context import AgentContext
from harbor.models.trial.config import AgentConfig, TrialConfig
from harbor.models.trial.config import TaskConfig as TaskSource
from harbor.models.trial.result import AgentInfo, ExceptionInfo, TimingInfo, TrialResult

from harbor_backend.core.trial import Trial
from harbor_backend.trial.outcome import native_workflow
from osmosis_ai.gateway import Gateway
from osmosis_ai.rollout import RolloutStatus
from osmosis_ai.rollout.types.status import RolloutErrorCategory
from tests.harbor_backend.specs import living, make_spec

KEY = "sk-the-operators-own-key"
NOW = datetime.now(UTC)


@pytest.fixture
async def trial(tmp_path: Path) -> AsyncIterator[Trial]:
    async with (
        Gateway() as gateway,
        gateway.open("r", "embedded/shell", KEY) as endpoint,
        living(make_spec(tmp_path, agent="mini-swe-agent", endpoint=endpoint)) as trial,
    ):
        yield trial


@pytest.fixture
def result(tmp_path: Path) -> TrialResult:
    (tmp_path / "trial" / "agent").mkdir(parents=True)
    (tmp_path / "trial" / "steps" / "one" / "agent").mkdir(parents=True)
    config = TrialConfig(
        task=TaskSource(path=tmp_path),
        trial_name="trial",
        trials_dir=tmp_path,
        agent=AgentConfig(name="nop"),
    )
    return TrialResult(
        id=uuid4(),
        task_name="t",
        trial_name="trial",
        trial_uri="",
        task_id=config.task.get_task_id(),
        task_checksum="",
        config=config,
        agent_info=AgentInfo(name="mini-swe-agent", version="1"),
        agent_execution=TimingInfo(started_at=NOW),
        agent_result=AgentContext(n_input_tokens=7),
    )


def document(**extra: Any) -> dict[str, Any]:
    call = {"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "mini-swe-agent", "version": "2", "extra": extra or None},
        "steps": [
            {"step_id": 1, "source": "user", "message": "List."},
            {
                "step_id": 2,
                "source": "agent",
                "message": "",
                "tool_calls": [call],
                "observation": {"results": [{"content": "a"}]},
            },
            {"step_id": 3, "source": "agent", "message": "Done."},
        ],
        "final_metrics": {"total_prompt_tokens": 99, "total_completion_tokens": 4},
    }


def write(result: TrialResult, value: Any, folder: str = "agent") -> None:
    path = Path(result.config.trials_dir) / "trial" / folder / "trajectory.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize("folder", ["agent", "steps/one/agent"])
async def test_one_document_is_the_sample(trial: Trial, result: TrialResult, folder: str) -> None:
    write(result, document(), folder)
    workflow = native_workflow(trial, result)
    assert workflow.status is RolloutStatus.SUCCESS
    assert workflow.sample is not None
    assert trial.results.notes == []
    assert workflow.sample.label == "blue"
    assert workflow.sample.metrics == {"input_tokens": 7, "output_tokens": 4}
    user, called, answered, said = cast("list[dict[str, Any]]", list(workflow.sample.messages))
    assert user == {"role": "user", "content": "List."}
    assert called["tool_calls"][0]["id"] == "c1"
    # The document does not name the call, and there is only one that it can be.
    assert answered == {"role": "tool", "tool_call_id": "c1", "content": "a"}
    assert said == {"role": "assistant", "content": "Done."}


async def test_a_result_is_not_given_to_one_of_several_calls(
    trial: Trial, result: TrialResult
) -> None:
    value = document()
    calls = value["steps"][1]["tool_calls"]
    calls.append(calls[0] | {"tool_call_id": "c2"})
    write(result, value)
    sample = native_workflow(trial, result).sample
    assert sample is not None
    assert "tool_call_id" not in sample.messages[2]


async def test_secrets_are_taken_out(trial: Trial, result: TrialResult) -> None:
    assert trial.spec.policy is not None
    token = trial.spec.policy.endpoint.token
    value = document(
        model={"api_key": "unknown-secret", "max_tokens": 5, "note": "kept"},
        headers={"Authorization": "Bearer other-secret"},
        nested=[{"hf_token": "third-secret"}],
    )
    value["steps"][0]["message"] = f"My key is {token}, or {KEY}."
    write(result, value)
    sample = native_workflow(trial, result).sample
    assert sample is not None
    shown = sample.model_dump_json()
    for secret in (token, KEY, "unknown-secret", "other-secret", "third-secret"):
        assert secret not in shown
    assert sample.extra_fields["agent"]["extra"]["model"]["max_tokens"] == 5
    assert sample.extra_fields["agent"]["extra"]["model"]["note"] == "kept"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "the trial has 0"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "is not ATIF"),
        ({"steps": []}, "is not ATIF"),
        (document() | {"schema_version": "ATIF-v9"}, "is not ATIF: schema_version"),
    ],
)
async def test_no_usable_document_is_no_sample_and_a_note(
    trial: Trial, result: TrialResult, value: Any, why: str
) -> None:
    if value is not None:
        write(result, value)
    workflow = native_workflow(trial, result)
    assert workflow.status is RolloutStatus.SUCCESS
    assert workflow.sample is None
    (note,) = trial.results.notes
    assert why in note
    assert "mini-swe-agent" in note


async def test_several_documents_are_no_sample(trial: Trial, result: TrialResult) -> None:
    write(result, document())
    write(result, document(), "steps/one/agent")
    assert native_workflow(trial, result).sample is None
    assert "agent/trajectory.json, steps/one/agent/trajectory.json" in trial.results.notes[0]


async def test_a_link_is_not_followed(trial: Trial, result: TrialResult, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.json"
    target.write_text(json.dumps(document()))
    (tmp_path / "trial" / "agent" / "trajectory.json").symlink_to(target)
    assert native_workflow(trial, result).sample is None
    assert "not a regular file" in trial.results.notes[0]


async def test_a_failed_agent_keeps_the_sample_that_it_left(
    trial: Trial, result: TrialResult
) -> None:
    write(result, document())
    result.exception_info = ExceptionInfo(
        exception_type="AgentTimeoutError",
        exception_message="Agent execution timed out",
        exception_traceback="",
        occurred_at=NOW,
    )
    workflow = native_workflow(trial, result)
    assert workflow.status is RolloutStatus.FAILURE
    assert workflow.err_category is RolloutErrorCategory.TIMEOUT
    assert workflow.sample is not None
    assert len(workflow.sample.messages) == 4
