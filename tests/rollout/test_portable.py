"""Samples that are the same on both sides of a sandbox wall."""

import dataclasses
import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from osmosis_ai.rollout import RolloutSample
from osmosis_ai.rollout.container.files import ContainerResult, decode, encode
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
    assert decode(ContainerResult, encode(result)) == result


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
