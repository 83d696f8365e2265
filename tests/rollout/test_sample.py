"""RolloutSample: validation, the trajectory's copy, and JSON-safe telemetry."""

import json
import logging
import math
import numbers
import threading
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from osmosis_ai.rollout import RolloutSample


class ArrayInt:
    """An integer that is no ``int``, equal to one, as array libraries have."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __int__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        return self.value == other

    def __hash__(self) -> int:
        return hash(self.value)


class ArrayFloat:
    """A real number that is no ``float``, equal to one."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value

    def __eq__(self, other: object) -> bool:
        return self.value == other

    def __hash__(self) -> int:
        return hash(self.value)


numbers.Integral.register(ArrayInt)
numbers.Real.register(ArrayFloat)


def test_trajectory_defaults_to_an_isolated_copy() -> None:
    messages = [{"role": "user", "content": [{"text": "hi"}]}]
    sample = RolloutSample(messages=messages)
    messages[0]["content"] = "changed"
    assert sample.trajectory_messages == [{"role": "user", "content": [{"text": "hi"}]}]


def test_explicit_none_means_no_trajectory() -> None:
    assert RolloutSample(messages=[{"a": 1}], trajectory_messages=None).trajectory_messages is None


def test_own_trajectory_is_kept() -> None:
    sample = RolloutSample(messages=[{"a": 1}], trajectory_messages=[{"b": 2}])
    assert sample.trajectory_messages == [{"b": 2}]


def test_failed_snapshot_warns_and_saves_nothing(caplog: pytest.LogCaptureFixture) -> None:
    sample = RolloutSample(messages=[{"lock": threading.Lock()}])
    assert sample.trajectory_messages is None
    assert "Failed to snapshot messages for trajectory persistence" in caplog.text


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, "high", [], {}])
def test_reward_must_be_finite_also_on_assignment(reward: Any) -> None:
    with pytest.raises(ValidationError):
        RolloutSample(reward=reward)
    sample = RolloutSample(reward=0.5)
    with pytest.raises(ValidationError):
        sample.reward = reward
    assert sample.reward == 0.5


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**9), 10**9))
def test_finite_rewards_are_kept_as_floats(reward: float) -> None:
    sample = RolloutSample()
    sample.reward = reward
    assert sample.reward == reward
    assert type(sample.reward) is float


def test_telemetry_may_hold_anything() -> None:
    sample = RolloutSample(metrics={"loss": math.nan}, extra_fields={"object": object()})
    assert math.isnan(sample.metrics["loss"])


def test_json_safe_copy_is_self_when_nothing_changes() -> None:
    sample = RolloutSample(
        messages=[{"object": object()}],
        metrics={"a": 1, "b": 0.5, "c": True},
        extra_fields={"d": None, "e": ["x", {"y": []}]},
    )
    assert sample.json_safe_copy() is sample


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ArrayInt(3), 3),
        (ArrayFloat(0.5), 0.5),
        (Fraction(1, 2), 0.5),
        ((1, (2, "x")), [1, [2, "x"]]),
        ({1: "a", 0.5: "b", ArrayInt(7): "c", ArrayFloat(1.5): "d"}, ["1", "0.5", "7", "1.5"]),
        ([1, object(), 2], [1, 2]),
        ({"keep": 1, "drop": math.inf}, {"keep": 1}),
    ],
)
def test_json_safe_copy_converts(value: Any, expected: Any) -> None:
    sample = RolloutSample(metrics={"value": value}, extra_fields={"value": value})
    safe = sample.json_safe_copy()
    assert safe is not sample
    for found in (safe.metrics["value"], safe.extra_fields["value"]):
        assert (list(found) if isinstance(expected, list) else found) == expected
        json.dumps(found)
    assert sample.metrics["value"] is value, "the original stays as it was"


def test_json_safe_copy_drops_and_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    circle: list[Any] = []
    circle.append(circle)
    sample = RolloutSample(
        metrics={"nan": math.nan, "inf": math.inf, "array": ArrayFloat(-math.inf)},
        extra_fields={
            "bytes": b"x",
            "circle": circle,
            "keys": {True: 1, None: 2, (1,): 3, "kept": 4},
            "too large": Fraction(10**400),
        },
    )
    with caplog.at_level(logging.WARNING):
        safe = sample.json_safe_copy()
    assert safe.metrics == {}
    assert safe.extra_fields == {"circle": [], "keys": {"kept": 4}}
    assert len(caplog.records) == 1
    for kind in ("non-finite number", "bytes", "circular reference", "bool key", "tuple key"):
        assert kind in caplog.text


def test_json_safe_copy_ends_at_a_hundred_levels() -> None:
    value: Any = "end"
    for _ in range(5000):
        value = {"in": value}
    safe = RolloutSample(extra_fields={"deep": value}).json_safe_copy()
    assert json.dumps(safe.extra_fields).count('"in"') == 99
    safe.model_dump_json()


_LEAVES = (
    st.none()
    | st.booleans()
    | st.text(max_size=5)
    | st.integers()
    | st.floats()
    | st.binary(max_size=3)
    | st.fractions()
    | st.complex_numbers()
    | st.builds(ArrayInt, st.integers())
    | st.builds(ArrayFloat, st.floats())
)
_KEYS = st.text(max_size=3) | st.integers(0, 9) | st.booleans() | st.none() | st.floats(0, 1)
_TREES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(_KEYS, inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=3), _TREES, max_size=4))
def test_json_safe_copy_always_encodes_and_is_stable(tree: dict[str, Any]) -> None:
    safe = RolloutSample(metrics=tree, extra_fields=tree).json_safe_copy()
    assert json.loads(json.dumps(safe.metrics, allow_nan=False)) == safe.extra_fields
    assert safe.json_safe_copy() is safe


@given(
    st.dictionaries(
        st.text(max_size=3),
        st.recursive(
            st.none() | st.booleans() | st.text() | st.integers() | st.floats(allow_nan=False),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
            max_leaves=10,
        ).filter(lambda value: value not in (math.inf, -math.inf)),
    )
)
def test_what_json_holds_is_kept(tree: dict[str, Any]) -> None:
    if "Infinity" in json.dumps(tree):
        return
    sample = RolloutSample(metrics=tree)
    assert sample.json_safe_copy() is sample
