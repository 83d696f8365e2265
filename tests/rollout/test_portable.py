"""Samples that are the same on both sides of a sandbox wall."""

import dataclasses
import json
import logging
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from osmosis_ai.rollout import RolloutSample
from osmosis_ai.rollout.container.files import ContainerResult, decode_result, encode
from osmosis_ai.rollout.portable import portable_sample
from osmosis_ai.rollout.types import RolloutStatus


@dataclasses.dataclass
class Node:
    name: str
    children: "list[Node]" = dataclasses.field(default_factory=list)
    parent: "Node | None" = None


class Opaque:
    """Its ``repr`` holds an address."""


_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.dates()
    | st.fractions()
    | st.builds(Opaque)
)
_CONTENT = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.none(), inner, max_size=3)
        | st.builds(Node, st.text(max_size=3), st.just([]))
    ),
    max_leaves=12,
)


@given(_CONTENT, st.dictionaries(st.text(max_size=3), _CONTENT, max_size=3))
def test_a_portable_sample_crosses_unchanged(content: Any, telemetry: dict[str, Any]) -> None:
    sample = RolloutSample(messages=[{"content": content}], extra_fields=telemetry)
    portable = portable_sample(sample, phase="P")
    assert portable_sample(portable, phase="P") == portable
    result = ContainerResult(status=RolloutStatus.SUCCESS, sample=portable)
    assert decode_result(encode(result)) == result


def test_isolated_from_the_original() -> None:
    content: list[Any] = [1]
    sample = RolloutSample(
        messages=[{"content": content}], metrics={"m": content}, extra_fields={"e": content}
    )
    portable = portable_sample(sample, phase="P")
    content.append(2)
    assert portable.messages == [{"content": [1]}]
    assert portable.metrics == {"m": [1]}
    assert portable.extra_fields == {"e": [1]}


def test_objects_that_know_their_parents_end() -> None:
    root = Node("root")
    root.children = [Node(str(number), parent=root) for number in range(20)]
    portable = portable_sample(RolloutSample(messages=[{"content": root}]), phase="P")
    content = portable.messages[0]["content"]
    assert len(content["children"]) == 20
    assert content["children"][0]["parent"] == "<circular Node>"
    json.dumps(content)


def test_other_objects_keep_a_repr_without_address(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        sample = RolloutSample(messages=[{"content": [Opaque(), Opaque()]}])
        portable = portable_sample(sample, phase="P")
    shown = f"<{__name__}.Opaque object>"
    assert portable.messages == [{"content": [shown, shown]}]
    assert caplog.text.count("Opaque") == 1


def test_non_text_keys_from_mutation_do_not_fail_the_sample() -> None:
    sample = RolloutSample()
    sample.metrics[1] = 2.0  # type: ignore[index]
    sample.extra_fields[None] = 3  # type: ignore[index]
    portable = portable_sample(sample, phase="P")
    assert portable.metrics == {"1": 2.0}
    assert portable.extra_fields == {}


@pytest.mark.parametrize("value", [None, {}, "text", [RolloutSample()]])
def test_not_a_sample(value: object) -> None:
    with pytest.raises(TypeError, match="P must yield a RolloutSample, not "):
        portable_sample(value, phase="P")


@pytest.mark.parametrize(
    ("field", "value"),
    [("reward", float("nan")), ("messages", None), ("messages", ["text"]), ("metrics", "text")],
)
def test_smuggled_values_are_found(field: str, value: Any) -> None:
    sample = RolloutSample()
    sample.__dict__[field] = value
    with pytest.raises(ValidationError, match=field):
        portable_sample(sample, phase="P")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (b"x", "bytes"),
        (float("nan"), "non-finite number"),
        (float("inf"), "non-finite number"),
        ("a\ud800", "lone surrogate"),
        ({"a\ud800": 1}, "lone surrogate"),
        (10**5000, "number of thousands of digits"),
    ],
    ids=["bytes", "nan", "infinite", "text", "key", "huge"],
)
def test_what_json_cannot_hold_is_kept_and_noted(value: Any, kind: str) -> None:
    notes: list[str] = []
    sample = RolloutSample(messages=[{"content": value}, {"content": "hi"}])
    portable = portable_sample(sample, phase="P", notes=notes)
    (first, second) = portable.messages
    assert second == {"content": "hi"}
    assert first["content"] == value or value != value
    assert notes == [
        f"P: Sample messages hold what JSON cannot; it is text wherever they are written: {kind}"
    ]


def test_nothing_is_noted_of_json() -> None:
    notes: list[str] = []
    content: list[Any] = [1, 0.5, None, True, "é", {"a": []}]
    portable_sample(RolloutSample(messages=[{"content": content}]), phase="P", notes=notes)
    assert notes == []


def test_messages_that_cannot_be_copied_have_a_trajectory_all_the_same() -> None:
    sample = RolloutSample(messages=[{"lock": threading.Lock()}, {"content": "hi"}])
    assert sample.trajectory_messages is None
    portable = portable_sample(sample, phase="P")
    assert portable.trajectory_messages == portable.messages
    wanted_none = RolloutSample(messages=[{"content": "hi"}], trajectory_messages=None)
    assert portable_sample(wanted_none, phase="P").trajectory_messages is None


def test_a_sandbox_cannot_send_what_ends_the_host() -> None:
    deep: Any = "end"
    for _ in range(900):
        deep = [deep]
    result = ContainerResult(
        status=RolloutStatus.FAILURE,
        sample=RolloutSample.model_construct(messages=[{"content": deep}], metrics={"m": deep}),
        err_message="x" * 5_000_000,
        warnings=["y" * 5_000_000] * 500,
    ).result()
    assert len(result.err_message or "") == 16_384
    warnings = result.extra_fields["warnings"]
    assert len(warnings) == 101
    assert {len(warning) for warning in warnings[:-1]} == {2048}
    assert "nested deeper than 100 levels" in result.model_dump_json()
