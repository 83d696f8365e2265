"""From exceptions to categories and messages."""

import pytest
from pydantic import BaseModel, ValidationError

from osmosis_ai.rollout.errors import (
    DeadlineExceededError,
    WorkflowExitError,
    categorize_exception,
    describe_exception,
)
from osmosis_ai.rollout.types import RolloutErrorCategory


class Point(BaseModel):
    x: int
    y: int


class NoText(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("exc", "category"),
    [
        (TimeoutError(), "timeout"),
        (DeadlineExceededError(), "timeout"),
        (ValueError(), "validation_error"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), "validation_error"),
        (TypeError(), "validation_error"),
        (AssertionError(), "validation_error"),
        (RuntimeError(), "agent_error"),
        (OSError(), "agent_error"),
        (KeyError(), "agent_error"),
        (WorkflowExitError(), "agent_error"),
        (ExceptionGroup("g", [ValueError(), TypeError()]), "validation_error"),
        (ExceptionGroup("g", [ExceptionGroup("h", [TimeoutError()])]), "timeout"),
        (ExceptionGroup("g", [ValueError(), TimeoutError()]), "agent_error"),
    ],
)
def test_categories(exc: BaseException, category: str) -> None:
    assert categorize_exception(exc) is RolloutErrorCategory(category)


@pytest.mark.parametrize(
    ("exc", "text"),
    [
        (ValueError("as it is"), "as it is"),
        (ValueError(), "ValueError"),
        (ValueError(""), "ValueError"),
        (NoText(), "NoText (its text cannot be had: RuntimeError)"),
    ],
)
def test_descriptions(exc: BaseException, text: str) -> None:
    assert describe_exception(exc) == text


def test_validation_errors_name_each_field_and_no_link() -> None:
    with pytest.raises(ValidationError) as caught:
        Point.model_validate({"x": "left"})
    text = describe_exception(caught.value)
    assert text.startswith("2 validation error(s) for Point: x: ")
    assert "; y: Field required" in text
    assert "http" not in text
