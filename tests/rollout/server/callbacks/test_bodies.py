"""What the two callbacks say, and where they may go."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.rollout import (
    ExecutionResult,
    GraderCompleteRequest,
    RolloutCompleteRequest,
    RolloutErrorCategory,
    RolloutSample,
    RolloutStatus,
)
from osmosis_ai.rollout.server import ControllerAuth
from osmosis_ai.rollout.server.callbacks import (
    checked_callback_url,
    completion_body,
    grader_body,
)

PUBLISHED_CATEGORIES = {"timeout", "validation_error", "http_error", "agent_error"}


def sample(**fields: Any) -> RolloutSample:
    return RolloutSample(messages=[{"role": "user", "content": "2 + 2"}], reward=1.0, **fields)


def test_a_success() -> None:
    result = ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample(label="4"))
    assert json.loads(completion_body("r", result)) == {
        "rollout_id": "r",
        "status": "success",
        "extra_fields": None,
        "err_message": None,
        "err_category": None,
    }
    graded = json.loads(grader_body("r", result))
    assert graded == {
        "rollout_id": "r",
        "status": "success",
        "sample": {
            "messages": [{"role": "user", "content": "2 + 2"}],
            "label": "4",
            "reward": 1.0,
            "remove_sample": False,
            "metrics": {},
            "extra_fields": {},
        },
        "err_message": None,
        "err_category": None,
    }
    GraderCompleteRequest.model_validate(graded)


@pytest.mark.parametrize("status", ["failure", "cancelled", "unknown"])
def test_a_grader_callback_knows_success_and_failure_only(status: str) -> None:
    result = ExecutionResult(status=RolloutStatus(status), sample=sample(), err_message="no")
    graded = json.loads(grader_body("r", result))
    assert (graded["status"], graded["sample"]["reward"]) == ("failure", None)
    assert json.loads(completion_body("r", result))["status"] == status


def test_a_dropped_sample_has_no_reward() -> None:
    result = ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample(remove_sample=True))
    assert json.loads(grader_body("r", result))["sample"]["reward"] is None


def test_a_sample_that_json_cannot_hold_is_sent_as_text() -> None:
    odd = RolloutSample(messages=[{"content": b"\xff"}], label="4", reward=0.5)
    result = ExecutionResult(status=RolloutStatus.SUCCESS, sample=odd)
    graded = json.loads(grader_body("r", result))
    assert (graded["sample"]["reward"], graded["sample"]["label"]) == (0.5, "4")
    assert graded["sample"]["messages"] == [{"content": "/w=="}]


@pytest.mark.parametrize("category", list(RolloutErrorCategory))
def test_categories_that_published_trainers_reject_move_into_the_message(
    category: RolloutErrorCategory,
) -> None:
    result = ExecutionResult(
        status=RolloutStatus.FAILURE, err_message="it broke", err_category=category
    )
    for body in (completion_body("r", result), grader_body("r", result)):
        sent = json.loads(body)
        if category in PUBLISHED_CATEGORIES:
            assert (sent["err_category"], sent["err_message"]) == (category, "it broke")
        else:
            assert sent["err_category"] is None
            assert sent["err_message"] == f"[{category}] it broke"


@given(st.text(), st.sampled_from([None, *RolloutErrorCategory]))
def test_whatever_the_message_it_is_utf8(
    message: str, category: RolloutErrorCategory | None
) -> None:
    result = ExecutionResult(
        status=RolloutStatus.FAILURE, err_message=f"{message}\ud800", err_category=category
    )
    RolloutCompleteRequest.model_validate_json(completion_body("r", result))
    GraderCompleteRequest.model_validate_json(grader_body("r", result))


@pytest.mark.parametrize(
    "url",
    [
        "http://trainer:8080/done",
        "https://trainer.example/done?rollout=1",
        "http://127.0.0.1:9/",
        "http://[::1]:9/x",
    ],
)
def test_urls_of_trainers(url: str) -> None:
    assert checked_callback_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "trainer/done",
        "ftp://trainer/secret",
        "file:///secret",
        "http:///secret",
        "http://user:secret@trainer/",
        "http://secret@trainer/",
        "http://trainer/a secret",
        "http://trainer/\r\nsecret",
        "http://trainer:port/secret",
        "http://trainér/secret",
        "http://169.254.169.254/secret",
        "http://[fe80::1]/secret",
        "http://[::ffff:169.254.169.254]/secret",
        "http://2852039166/secret",
        "http://0xa9fea9fe/secret",
        "http://0251.0376.0251.0376/secret",
        "http://169.254.43518/secret",
        "http://169.254.169.254./secret",
        "http://0/secret",
        "http://[64:ff9b::a9fe:a9fe]/secret",
        "http://[2002:a9fe:a9fe::1]/secret",
        "http://[fd00:ec2::254]/secret",
        "http://0.0.0.0/secret",
        "http://224.0.0.1/secret",
        "http://trainer/" + "secret" * 2000,
    ],
)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="grader_callback_url") as refused:
        checked_callback_url(url, "grader_callback_url")
    assert "secret" not in str(refused.value)


def test_the_key_of_a_trainer() -> None:
    auth = ControllerAuth("trainer-key")
    assert auth.as_bearer_headers() == {"Authorization": "Bearer trainer-key"}
    assert "trainer-key" not in repr(auth)
    assert ControllerAuth().as_bearer_headers() is None
    assert ControllerAuth(api_key=None) == ControllerAuth()
    with pytest.raises(ValueError, match="controller_api_key"):
        ControllerAuth("a\nb")
