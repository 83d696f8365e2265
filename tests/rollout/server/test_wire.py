"""Whatever a sample holds, its result goes on the wire as valid JSON in valid UTF-8."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.common.texts import clean_text
from osmosis_ai.rollout import (
    ExecutionResult,
    RolloutErrorCategory,
    RolloutResultResponse,
    RolloutSample,
    RolloutStatus,
)
from osmosis_ai.rollout.server.callbacks import grader_body
from osmosis_ai.rollout.server.wire import encode_progress, encode_result, wire_reward

any_text = st.text(st.characters(exclude_categories=[]), max_size=8)
scalars: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | any_text
    | st.binary(max_size=4)
    | st.builds(object)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(any_text, inner, max_size=3)
    ),
    max_leaves=6,
)
objects = st.dictionaries(any_text, values, max_size=3)
samples = st.builds(
    RolloutSample,
    messages=st.lists(objects, max_size=3),
    label=st.none() | any_text,
    reward=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    remove_sample=st.booleans(),
    metrics=objects,
    extra_fields=objects,
)
results = st.builds(
    ExecutionResult,
    status=st.sampled_from([s for s in RolloutStatus if s.is_terminal]),
    sample=st.none() | samples,
    err_message=st.none() | any_text,
    err_category=st.none() | st.sampled_from(RolloutErrorCategory),
    extra_fields=objects,
)


def decoded(data: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is not JSON")

    found: dict[str, Any] = json.loads(data.decode("utf-8"), parse_constant=refuse)
    return found


@given(results)
def test_every_result_encodes(result: ExecutionResult) -> None:
    wire = decoded(encode_result("r-1", result))
    assert wire.keys() == {"rollout_id", "status", "sample", "err_message", "err_category"}
    assert wire["status"] == result.status
    assert wire["err_category"] == result.err_category
    if result.err_message is not None:
        assert wire["err_message"] == clean_text(result.err_message)
    RolloutResultResponse.model_validate(wire)
    if result.sample is None:
        assert wire["sample"] is None
        return
    assert wire["sample"].keys() == {
        "messages", "label", "reward", "remove_sample", "metrics", "extra_fields",
    }  # fmt: skip
    assert wire["sample"]["remove_sample"] == result.sample.remove_sample
    assert len(wire["sample"]["messages"]) == len(result.sample.messages)
    kept = result.status is RolloutStatus.SUCCESS and not result.sample.remove_sample
    assert wire["sample"]["reward"] == (result.sample.reward if kept else None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.text(), json_values, max_size=3), max_size=3))
def test_json_messages_arrive_unchanged(messages: list[dict[str, Any]]) -> None:
    result = ExecutionResult(
        status=RolloutStatus.SUCCESS, sample=RolloutSample(messages=messages, reward=1.0)
    )
    assert decoded(encode_result("r", result))["sample"]["messages"] == messages


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("é\U0001f600", "é\U0001f600"),
    ],
)
def test_surrogates(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


@pytest.mark.parametrize("status", RolloutStatus)
@pytest.mark.parametrize("remove", [False, True])
def test_who_may_see_a_reward(status: RolloutStatus, remove: bool) -> None:
    sample = RolloutSample(reward=0.5, remove_sample=remove)
    expected = 0.5 if status is RolloutStatus.SUCCESS and not remove else None
    assert wire_reward(ExecutionResult(status=status, sample=sample)) == expected
    assert sample.reward == 0.5


class Odd:
    def __str__(self) -> str:
        return "an odd one"


class Silent:
    def __str__(self) -> str:
        raise RuntimeError


def circular() -> dict[str, Any]:
    message: dict[str, Any] = {"role": "user"}
    message["self"] = message
    return message


def deep() -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(100_000):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (b"\xff", "/w=="),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (10**5000, hex(10**5000)),
        ("a\ud800b", "a\ufffdb"),
        ({1}, [1]),
        (Odd(), "an odd one"),
        (Silent(), "<Silent without a text: RuntimeError>"),
    ],
    ids=["bytes", "nan", "infinite", "huge", "surrogate", "set", "object", "silent"],
)
def test_messages_that_json_cannot_hold_are_converted_one_by_one(value: Any, written: Any) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [1, value]}]
    sample = RolloutSample(messages=messages, reward=1.0, label="l", metrics={"a": 1})
    result = ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample)
    converted = [messages[0], {"role": "assistant", "content": [1, written]}]
    assert decoded(encode_result("r", result))["sample"] == {
        "messages": converted,
        "label": "l",
        "reward": 1.0,
        "remove_sample": False,
        "metrics": {"a": 1},
        "extra_fields": {},
    }
    dumped = decoded(result.model_dump_json().encode())
    assert dumped["sample"]["messages"] == dumped["sample"]["trajectory_messages"] == converted


@pytest.mark.parametrize(
    ("message", "end"),
    [(circular(), "<circular dict>"), (deep(), "<dict nested deeper than 200 levels>")],
    ids=["circular", "deep"],
)
def test_messages_that_never_end(message: dict[str, Any], end: str) -> None:
    sample = RolloutSample.model_construct(
        messages=[message, {"role": "user"}], trajectory_messages=None, reward=1.0
    )
    result = ExecutionResult.model_construct(
        status=RolloutStatus.SUCCESS, sample=sample, err_message=None, err_category=None
    )
    text = encode_result("r", result).decode()
    assert end in text
    assert decoded(text.encode())["sample"]["messages"][1] == {"role": "user"}


def test_progress_means_id_and_status_only() -> None:
    assert decoded(encode_progress("r é", RolloutStatus.GRADING)) == {
        "rollout_id": "r é",
        "status": "grading",
        "sample": None,
        "err_message": None,
        "err_category": None,
    }


def test_a_reward_beside_an_agents_failure_reaches_the_trainer() -> None:
    """Both generations take a success with a category: the reward counts, the failure is said."""
    late = ExecutionResult(
        status=RolloutStatus.SUCCESS,
        sample=RolloutSample(label="4", reward=0.5),
        err_message="too late",
        err_category=RolloutErrorCategory.TIMEOUT,
    )
    for body in (encode_result("r", late), grader_body("r", late)):
        fields = decoded(body)
        assert fields["sample"]["reward"] == 0.5
        told = RolloutResultResponse.model_validate(fields)
        assert (told.status, told.err_category) == (RolloutStatus.SUCCESS, late.err_category)
        assert told.err_message == "too late"
