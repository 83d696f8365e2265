"""Requests, outcomes, configs and the wire models."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from osmosis_ai.rollout import (
    AgentWorkflowConfig,
    ConcurrencyConfig,
    ExecutionOutcome,
    ExecutionRequest,
    ExecutionResult,
    GraderConfig,
    RolloutInitRequest,
    RolloutInitResponse,
    RolloutSample,
    RolloutStatus,
)
from osmosis_ai.rollout.types import CancelRolloutsRequest

SUCCESS = RolloutStatus.SUCCESS
FAILURE = RolloutStatus.FAILURE


@pytest.mark.parametrize("timeout", [None, 0, -1, 0.5, 1e9])
@pytest.mark.parametrize("name", ["agent_timeout_sec", "grader_timeout_sec"])
def test_timeouts_accepted(name: str, timeout: float | None) -> None:
    assert getattr(ExecutionRequest.model_validate({"id": "a", name: timeout}), name) == timeout


@pytest.mark.parametrize("timeout", [math.nan, math.inf, -math.inf, "soon"])
@pytest.mark.parametrize("name", ["agent_timeout_sec", "grader_timeout_sec"])
def test_timeouts_refused(name: str, timeout: Any) -> None:
    with pytest.raises(ValidationError, match=name):
        ExecutionRequest.model_validate({"id": "a", name: timeout})
    wire = {"rollout_id": "a", "initial_messages": [], "chat_completions_url": "http://x"}
    with pytest.raises(ValidationError, match=name):
        RolloutInitRequest.model_validate({**wire, name: timeout})


def _result(status: RolloutStatus, content: str | None) -> ExecutionResult:
    sample = None if content is None else RolloutSample(messages=[{"content": content}])
    return ExecutionResult(status=status, sample=sample)


@pytest.mark.parametrize(
    ("workflow", "grader", "announced", "saved"),
    [
        ((SUCCESS, "w"), None, (SUCCESS, "w"), (SUCCESS, "w")),
        ((SUCCESS, "w"), (SUCCESS, "g"), (SUCCESS, "g"), (SUCCESS, "g")),
        ((SUCCESS, "w"), (FAILURE, None), (FAILURE, None), (SUCCESS, "w")),
        ((FAILURE, None), None, (FAILURE, None), (FAILURE, None)),
        ((FAILURE, None), (SUCCESS, "g"), (FAILURE, "g"), (SUCCESS, "g")),
        ((FAILURE, "w"), (SUCCESS, "g"), (FAILURE, "w"), (SUCCESS, "g")),
    ],
)
def test_which_result_is_announced_and_which_saved(
    workflow: Any, grader: Any, announced: Any, saved: Any
) -> None:
    outcome = ExecutionOutcome(
        workflow=_result(*workflow), grader=None if grader is None else _result(*grader)
    )

    assert outcome.result == _result(*announced)
    assert outcome.result_to_save == _result(*saved)


def test_terminal_statuses() -> None:
    assert {status.value for status in RolloutStatus if not status.is_terminal} == {
        "queued",
        "running",
        "grading",
    }


@pytest.mark.parametrize("limit", [0, -1, "many"])
def test_concurrency_must_be_positive(limit: Any) -> None:
    with pytest.raises(ValidationError):
        ConcurrencyConfig(max_concurrent=limit)


@pytest.mark.parametrize("kind", [AgentWorkflowConfig, GraderConfig])
def test_configs_take_anything_more(
    kind: type[AgentWorkflowConfig | GraderConfig],
) -> None:
    tool = object()
    config = kind.model_validate({"name": "x", "tool": tool})
    assert config.model_dump()["tool"] is tool
    assert config.concurrency.max_concurrent is None
    with pytest.raises(ValidationError, match="name"):
        kind.model_validate({})
    with pytest.raises(ValidationError, match="name"):
        config.name = None  # type: ignore[assignment]


def test_config_defaults_are_not_shared() -> None:
    first = AgentWorkflowConfig(name="a")
    first.concurrency.max_concurrent = 1
    assert AgentWorkflowConfig(name="b").concurrency.max_concurrent is None


def test_lease_must_outlive_the_wait() -> None:
    fields = {"rollout_id": "a", "polling_lease_token": "t", "result_wait_timeout_sec": 30}
    assert RolloutInitResponse.model_validate({**fields, "polling_lease_timeout_sec": 31})
    for bad in (30, 29, math.inf, math.nan):
        with pytest.raises(ValidationError, match="polling_lease_timeout_sec"):
            RolloutInitResponse.model_validate({**fields, "polling_lease_timeout_sec": bad})
    with pytest.raises(ValidationError):
        RolloutInitResponse.model_validate(
            {**fields, "polling_lease_token": "", "polling_lease_timeout_sec": 31}
        )


def test_model_key_is_absent_or_not_empty() -> None:
    wire = {"rollout_id": "a", "initial_messages": [], "chat_completions_url": "http://x"}
    assert RolloutInitRequest.model_validate({**wire, "llm_api_key": None}).llm_api_key is None
    with pytest.raises(ValidationError, match="llm_api_key"):
        RolloutInitRequest.model_validate({**wire, "llm_api_key": ""})


@pytest.mark.parametrize("chosen", [{"ids": []}, {"ids": ["a"]}, {"prefix": ""}, {"all": True}])
def test_one_cancel_selector(chosen: dict[str, Any]) -> None:
    assert CancelRolloutsRequest.model_validate(chosen)


@pytest.mark.parametrize(
    "chosen", [{}, {"all": False}, {"ids": ["a"], "all": True}, {"ids": [], "prefix": "a"}]
)
def test_none_or_several_cancel_selectors(chosen: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="exactly one of"):
        CancelRolloutsRequest.model_validate(chosen)
