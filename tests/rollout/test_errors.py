"""From exceptions to categories and messages."""

from typing import Any

import httpx
import openai
import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

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


class Refused(Exception):
    def __init__(self, status_code: object) -> None:
        self.status_code = status_code


class Wrapped(Exception):
    """As Strands wraps what its model raised."""

    def __init__(self, original: Exception | None) -> None:
        self.original_exception = original


class Broken(Exception):
    @property
    def status_code(self) -> int:
        raise RuntimeError


ASKED: Any = httpx.Request("POST", "http://model/v1/chat/completions")


def answered(status: int) -> Any:
    return httpx.HTTPStatusError(
        "no", request=ASKED, response=httpx.Response(status, request=ASKED)
    )


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
        (Refused(429), "http_error"),
        (Refused(503), "http_error"),
        (Refused(400), "agent_error"),
        (Refused("503"), "agent_error"),
        (Wrapped(Refused(401)), "http_error"),
        (Wrapped(ValueError()), "agent_error"),
        (Wrapped(None), "agent_error"),
        (Broken(), "agent_error"),
        (httpx.ConnectError("refused"), "http_error"),
        (httpx.ReadTimeout("slow"), "http_error"),
        (answered(502), "http_error"),
        (answered(404), "agent_error"),
        (openai.APIConnectionError(request=ASKED), "http_error"),
        (
            openai.RateLimitError("slow down", response=answered(429).response, body=None),
            "http_error",
        ),
        (
            openai.BadRequestError("too long", response=answered(400).response, body=None),
            "agent_error",
        ),
        (ExceptionGroup("g", [Refused(500), answered(502)]), "http_error"),
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


def test_groups_tell_their_members() -> None:
    inner = ExceptionGroup("inner", [KeyError("k"), OSError(28, "No space left on device")])
    group = ExceptionGroup("outer", [ValueError("v"), inner, RuntimeError()])
    assert describe_exception(group) == (
        "outer (3 sub-exceptions): ValueError: v; ExceptionGroup: inner (2 sub-exceptions): "
        "KeyError: 'k'; OSError: [Errno 28] No space left on device; RuntimeError"
    )


def _nested(depth: int) -> Exception:
    exc: Exception = ValueError("the last")
    for _ in range(depth):
        exc = ExceptionGroup("g", [exc])
    return exc


@pytest.mark.parametrize(
    "exc",
    [
        ValueError("x" * 5_000_000),
        ExceptionGroup("g" * 5_000_000, [ValueError("x" * 5_000_000)] * 50),
        ExceptionGroup("many", [ValueError(str(n)) for n in range(100_000)]),
        ExceptionGroup("wide", [ExceptionGroup("w", [ValueError("x" * 99_999)] * 30)] * 30),
        _nested(400),
    ],
    ids=["long", "long in a group", "many", "wide", "nested"],
)
def test_no_description_is_long(exc: Exception) -> None:
    assert len(describe_exception(exc)) <= 16_384


def test_of_many_fields_the_first_are_named() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(list[int]).validate_python(["x"] * 10_000)
    text = describe_exception(caught.value)
    assert text.startswith("10000 validation error(s) for list[int]: 0: Input should be")
    assert text.endswith("; and 9990 more")
