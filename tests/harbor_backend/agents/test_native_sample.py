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

from harbor_backend.outcome import native_workflow
from harbor_backend.program import Wiring, make_program
from harbor_backend.trials import TrialRecord
from osmosis_ai.gateway import Gateway
from osmosis_ai.rollout import ExecutionRequest, RolloutStatus
from osmosis_ai.rollout.backend.live import LiveRollouts
from osmosis_ai.rollout.types.status import RolloutErrorCategory

KEY = "sk-the-operators-own-key"
NOW = datetime.now(UTC)


@pytest.fixture
async def record() -> AsyncIterator[TrialRecord]:
    program = make_program(Wiring("mini-swe-agent", None, None, None, None, None))
    async with (
        Gateway() as gateway,
        gateway.open("r", "embedded/shell", KEY) as endpoint,
        LiveRollouts().admit("r") as live,
    ):
        request = ExecutionRequest(id="r", label="blue")
        made = TrialRecord(request, live, program, endpoint)
        yield made
        made.close()


@pytest.fixture
def trial(tmp_path: Path) -> TrialResult:
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


def write(trial: TrialResult, value: Any, folder: str = "agent") -> None:
    path = Path(trial.config.trials_dir) / "trial" / folder / "trajectory.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize("folder", ["agent", "steps/one/agent"])
async def test_one_document_is_the_sample(
    record: TrialRecord, trial: TrialResult, folder: str
) -> None:
    write(trial, document(), folder)
    result = native_workflow(record, trial)
    assert result.status is RolloutStatus.SUCCESS
    assert result.sample is not None
    assert record.notes == []
    assert result.sample.label == "blue"
    assert result.sample.metrics == {"input_tokens": 7, "output_tokens": 4}
    user, called, answered, said = cast("list[dict[str, Any]]", list(result.sample.messages))
    assert user == {"role": "user", "content": "List."}
    assert called["tool_calls"][0]["id"] == "c1"
    # The document does not name the call, and there is only one that it can be.
    assert answered == {"role": "tool", "tool_call_id": "c1", "content": "a"}
    assert said == {"role": "assistant", "content": "Done."}


async def test_a_result_is_not_given_to_one_of_several_calls(
    record: TrialRecord, trial: TrialResult
) -> None:
    value = document()
    calls = value["steps"][1]["tool_calls"]
    calls.append(calls[0] | {"tool_call_id": "c2"})
    write(trial, value)
    sample = native_workflow(record, trial).sample
    assert sample is not None
    assert "tool_call_id" not in sample.messages[2]


async def test_secrets_are_taken_out(record: TrialRecord, trial: TrialResult) -> None:
    assert record.endpoint is not None
    token = record.endpoint.token
    value = document(
        model={"api_key": "unknown-secret", "max_tokens": 5, "note": "kept"},
        headers={"Authorization": "Bearer other-secret"},
        nested=[{"hf_token": "third-secret"}],
    )
    value["steps"][0]["message"] = f"My key is {token}, or {KEY}."
    write(trial, value)
    sample = native_workflow(record, trial).sample
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
    record: TrialRecord, trial: TrialResult, value: Any, why: str
) -> None:
    if value is not None:
        write(trial, value)
    result = native_workflow(record, trial)
    assert result.status is RolloutStatus.SUCCESS
    assert result.sample is None
    (note,) = record.notes
    assert why in note
    assert "mini-swe-agent" in note


async def test_several_documents_are_no_sample(record: TrialRecord, trial: TrialResult) -> None:
    write(trial, document())
    write(trial, document(), "steps/one/agent")
    assert native_workflow(record, trial).sample is None
    assert "agent/trajectory.json, steps/one/agent/trajectory.json" in record.notes[0]


async def test_a_link_is_not_followed(
    record: TrialRecord, trial: TrialResult, tmp_path: Path
) -> None:
    target = tmp_path / "elsewhere.json"
    target.write_text(json.dumps(document()))
    (tmp_path / "trial" / "agent" / "trajectory.json").symlink_to(target)
    assert native_workflow(record, trial).sample is None
    assert "not a regular file" in record.notes[0]


async def test_a_failed_agent_keeps_the_sample_that_it_left(
    record: TrialRecord, trial: TrialResult
) -> None:
    write(trial, document())
    trial.exception_info = ExceptionInfo(
        exception_type="AgentTimeoutError",
        exception_message="Agent execution timed out",
        exception_traceback="",
        occurred_at=NOW,
    )
    result = native_workflow(record, trial)
    assert result.status is RolloutStatus.FAILURE
    assert result.err_category is RolloutErrorCategory.TIMEOUT
    assert result.sample is not None
    assert len(result.sample.messages) == 4
