"""Params and model settings become one request: which of them wins."""

from typing import Any

import pytest
from agents import ModelSettings
from openai.types.shared import Reasoning

from osmosis_ai.rollout.integrations.agents.binding import request_arguments
from osmosis_ai.rollout.integrations.agents.openai_agents_settings import with_params


@pytest.mark.parametrize(
    ("params", "settings", "expected"),
    [
        ({}, ModelSettings(top_p=0.5), ModelSettings(top_p=0.5)),
        ({"top_p": 0.1}, ModelSettings(), ModelSettings(top_p=0.1)),
        ({"top_p": 0.1}, ModelSettings(top_p=0.5), ModelSettings(top_p=0.5)),
        ({"max_tokens": 0}, ModelSettings(temperature=0.0), ModelSettings(0.0, max_tokens=0)),
        ({"temperature": 0.7}, ModelSettings(temperature=0.0), ModelSettings(temperature=0.0)),
        ({"seed": 1}, ModelSettings(), ModelSettings(extra_args={"seed": 1})),
        (
            {"seed": 1, "stop": "x"},
            ModelSettings(extra_args={"seed": 2}),
            ModelSettings(extra_args={"seed": 2, "stop": "x"}),
        ),
        (
            {"top_p": 0.1},
            ModelSettings(extra_args={"top_p": 0.5}),
            ModelSettings(extra_args={"top_p": 0.5}),
        ),
        (
            {"extra_body": {"a": 1, "b": 1}},
            ModelSettings(extra_body={"b": 2}),
            ModelSettings(extra_body={"a": 1, "b": 2}),
        ),
        (
            {"reasoning_effort": "low"},
            ModelSettings(reasoning=Reasoning(effort="high")),
            ModelSettings(reasoning=Reasoning(effort="high")),
        ),
        (
            {"reasoning_effort": "low"},
            ModelSettings(),
            ModelSettings(extra_args={"reasoning_effort": "low"}),
        ),
        (
            {"max_completion_tokens": 9},
            ModelSettings(max_tokens=3),
            ModelSettings(max_tokens=3),
        ),
        (
            {"stream_options": {"include_usage": True}},
            ModelSettings(include_usage=False),
            ModelSettings(include_usage=False),
        ),
    ],
)
def test_an_explicit_setting_wins(
    params: dict[str, Any], settings: ModelSettings, expected: ModelSettings
) -> None:
    assert with_params(settings, params, structured=False) == expected


@pytest.mark.parametrize(("structured", "kept"), [(True, None), (False, {"response_format": "x"})])
def test_an_output_type_decides_the_response_format(structured: bool, kept: Any) -> None:
    params = {"response_format": "x"}
    assert with_params(ModelSettings(), params, structured=structured).extra_args == kept


def test_names_that_the_client_does_not_know_go_into_the_body() -> None:
    assert request_arguments({"temperature": 1, "top_k": 2}) == {
        "temperature": 1,
        "extra_body": {"top_k": 2},
    }
    assert request_arguments({"top_k": 2, "extra_body": {"top_k": 3, "min_p": 4}}) == {
        "extra_body": {"top_k": 3, "min_p": 4}
    }
    assert request_arguments({"seed": 1}) == {"seed": 1}
