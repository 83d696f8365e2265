"""Messages between host and sandbox: nothing is lost on the way, nothing bad is believed."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from osmosis_ai.rollout import ExecutionResult, RolloutErrorCategory, RolloutSample, RolloutStatus
from osmosis_ai.rollout.container.files import (
    MAX_RESULT_BYTES,
    ContainerInput,
    ContainerResult,
    decode_input,
    decode_result,
    encode,
)

any_text = st.text(st.characters(exclude_categories=[]), max_size=8)
keys = any_text | st.sampled_from(["$osmosis:bytes", "$osmosis:dict"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | any_text
    | st.binary(max_size=8)
    | st.sampled_from(["$osmosis:bytes", "$osmosis:dict"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(keys, values, max_size=3)
messages = st.lists(objects, max_size=3)
samples = st.builds(
    RolloutSample,
    messages=messages,
    trajectory_messages=st.none() | messages,
    label=st.none() | any_text,
    reward=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    remove_sample=st.booleans(),
    metrics=objects,
    extra_fields=objects,
)


def same(left: Any, right: Any) -> bool:
    """Equality of values and types, where NaN equals itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


@given(
    st.builds(
        ContainerResult,
        status=st.sampled_from(RolloutStatus),
        sample=st.none() | samples,
        err_message=st.none() | any_text,
        err_category=st.none() | st.sampled_from(RolloutErrorCategory),
    )
)
def test_results_survive(result: ContainerResult) -> None:
    data = encode(result)
    assert data.isascii()
    assert same(decode_result(data).model_dump(), result.model_dump())


@given(
    st.builds(
        ContainerInput,
        rollout_id=st.just("r 1"),
        prompt=messages,
        label=st.none() | any_text,
        metadata=st.none() | objects,
        api_key=st.none() | any_text,
        agent_timeout_sec=st.none() | st.floats(allow_nan=False, allow_infinity=False),
        sample=st.none() | samples,
    )
)
def test_inputs_survive(task: ContainerInput) -> None:
    assert same(decode_input(encode(task)).model_dump(), task.model_dump())


def test_a_request_for_the_core() -> None:
    task = ContainerInput(
        rollout_id="r", prompt=[{"a": 1}], label="l", metadata={"m": 1}, grader_timeout_sec=2
    )
    request = task.request()
    assert (request.id, request.prompt, request.label) == ("r", [{"a": 1}], "l")
    assert (request.metadata, request.agent_timeout_sec) == ({"m": 1}, None)
    assert request.grader_timeout_sec == 2


def test_a_result_of_the_core_keeps_all_but_diagnostics() -> None:
    result = ExecutionResult(
        status=RolloutStatus.FAILURE,
        sample=RolloutSample(messages=[{"a": 1}], trajectory_messages=None),
        err_message="m",
        err_category=RolloutErrorCategory.TIMEOUT,
        extra_fields={"host": "only"},
    )
    back = decode_result(encode(ContainerResult.of(result))).result()
    assert back == result.model_copy(update={"extra_fields": {}})
    assert back.sample is not None
    assert back.sample.trajectory_messages is None


@pytest.mark.parametrize("status", RolloutStatus)
def test_a_sandbox_may_claim_success_or_failure_only(status: RolloutStatus) -> None:
    claimed = ContainerResult(status=status)
    if status in {RolloutStatus.SUCCESS, RolloutStatus.FAILURE}:
        assert claimed.result().status is status
    else:
        with pytest.raises(ValueError, match=status.value):
            claimed.result()


def test_a_trajectory_that_is_the_messages_crosses_once() -> None:
    sample = RolloutSample(messages=[{"role": "assistant", "content": "x" * 5_000_000}])
    result = ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample)
    data = encode(ContainerResult.of(result))
    assert len(data) < 5_100_000
    assert decode_result(data).result() == result


def test_a_result_has_a_largest_size() -> None:
    with pytest.raises(ValueError, match=str(MAX_RESULT_BYTES)):
        decode_result(bytes(MAX_RESULT_BYTES + 1))


@pytest.mark.parametrize("item", [b"[]", b"0", b'""', b"{}"])
def test_a_result_has_a_largest_number_of_values(item: bytes) -> None:
    many = b"[" + b",".join([item] * 1_100_000) + b"]"
    data = b'{"status": "success", "sample": {"extra_fields": {"a": ' + many + b"}}}"
    with pytest.raises(ValueError, match="over 1000000 values"):
        decode_result(data)


@pytest.mark.parametrize("depth", [2_000, 100_000])
def test_nested_too_deeply(depth: int) -> None:
    nested = b"[" * depth + b"]" * depth
    data = b'{"status": "success", "sample": {"extra_fields": {"a": ' + nested + b"}}}"
    with pytest.raises(ValueError, match="nests over 512 levels deep"):
        decode_result(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{}",
        b'{"status": "great"}',
        b'{"status": "success", "version": 2}',
        b'{"status": "success", "sample": {"reward": NaN}}',
        b'{"status": "success", "sample": {"reward": "high"}}',
        b'{"status": "success", "sample": {"messages": [1]}}',
        b'{"status": "success", "err_message": {"$osmosis:bytes": "no base64"}}',
        b'{"status": "success", "err_message": {"$osmosis:dict": [["a"]]}}',
        b'{"status": "success", "err_message": {"$osmosis:dict": [1]}}',
    ],
)
def test_what_is_no_result(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_result(data)


def test_unknown_fields() -> None:
    """A newer sandbox may say more; a newer host may not ask for what is not understood."""
    assert decode_result(b'{"status": "success", "more": 1}').status == "success"
    with pytest.raises(ValidationError, match="more"):
        decode_input(json.dumps({"rollout_id": "r", "more": 1}).encode())
