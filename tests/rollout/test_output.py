"""AgentWorkflowOutput and the normalisation of return values."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from osmosis_ai.rollout import AgentWorkflowOutput
from osmosis_ai.rollout.types import coerce_output

_NOT_FINITE = st.sampled_from([math.nan, math.inf, -math.inf])
_MESSAGES = st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3))


def test_none_asks_for_the_fallback() -> None:
    assert coerce_output(None) is None


@given(_MESSAGES)
def test_a_list_becomes_the_messages(messages: list[dict[str, Any]]) -> None:
    output = coerce_output(messages)
    assert output is not None
    assert output.messages == messages
    assert output.metrics == {}


def test_an_empty_list_is_a_real_output() -> None:
    output = coerce_output([])
    assert output is not None
    assert output.messages == []


@given(_MESSAGES, st.dictionaries(st.text(max_size=4), st.floats(-1e9, 1e9), max_size=3))
def test_an_output_is_a_validated_copy(
    messages: list[dict[str, Any]], metrics: dict[str, float]
) -> None:
    output = AgentWorkflowOutput(messages=messages, metrics=metrics)
    coerced = coerce_output(output)
    assert coerced == output
    assert coerced is not output


@pytest.mark.parametrize("value", [(), {}, "text", b"bytes", 1, 1.5, True, object(), {1}, iter([])])
def test_anything_else_is_a_type_error_that_names_it(value: object) -> None:
    with pytest.raises(TypeError, match=f"not {type(value).__name__}$"):
        coerce_output(value)


@given(_NOT_FINITE)
def test_non_finite_metrics_are_refused_however_they_got_in(number: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        AgentWorkflowOutput(metrics={"loss": number})
    mutated = AgentWorkflowOutput(metrics={"loss": 1.0})
    mutated.metrics["loss"] = number
    for smuggled in (AgentWorkflowOutput.model_construct(metrics={"loss": number}), mutated):
        with pytest.raises(ValidationError, match="finite"):
            coerce_output(smuggled)


def test_unknown_fields_are_refused_however_they_got_in() -> None:
    with pytest.raises(ValidationError, match="score"):
        AgentWorkflowOutput.model_validate({"messages": [], "score": 1})
    smuggled = AgentWorkflowOutput(messages=[])
    smuggled.__dict__["score"] = 1
    with pytest.raises(ValidationError, match="score"):
        coerce_output(smuggled)


def test_mutable_defaults_are_not_shared() -> None:
    first = AgentWorkflowOutput()
    first.metrics["x"] = 1.0
    assert AgentWorkflowOutput().metrics == {}
