"""Comparing outcomes with what a case expects, and with each other."""

import re
from collections.abc import Mapping
from typing import Any

from osmosis_ai.rollout import ExecutionOutcome, ExecutionResult, RolloutSample
from tests.conformance.model import Case, Phase

_ABSOLUTE_PATH = re.compile(r"(?<![\w./])/(?:[^\s/'\":,]+/)*[^\s/'\":,]+")
_QUEUED = re.compile(r" \(\d+\.\ds of it spent queued\)")
"""What a message about a deadline adds where a rollout waited for its turn: a busy machine, not a
backend, decides whether this one did."""


def comparable(outcome: ExecutionOutcome) -> dict[str, Any]:
    """Return all of an outcome that must be equal on every backend.

    Left out are the diagnostics (``extra_fields`` of a result), and absolute
    paths and the time spent queued in messages. Numbers keep their type and NaN equals NaN.
    """
    return {
        "workflow": comparable_result(outcome.workflow),
        "grader": None if outcome.grader is None else comparable_result(outcome.grader),
    }


def comparable_result(result: ExecutionResult) -> dict[str, Any]:
    """Return all of one phase's result that must be equal; see ``comparable``."""
    message = _unqueued(result)
    return {
        "status": result.status.value,
        "category": None if result.err_category is None else result.err_category.value,
        "message": None if message is None else _ABSOLUTE_PATH.sub("<path>", message),
        "sample": None if result.sample is None else _comparable_sample(result.sample),
    }


def assert_outcome(case: Case, outcome: ExecutionOutcome) -> None:
    """Assert that ``outcome`` is what ``case`` expects, field by field."""
    _assert_phase("workflow", case.expected, outcome.workflow)
    if case.graded is None:
        assert outcome.grader is None, f"nothing should be graded, got {outcome.grader!r:.500}"
    else:
        assert outcome.grader is not None, "grading should have followed"
        _assert_phase("grader", case.graded, outcome.grader)


def _assert_phase(name: str, expected: Phase, result: ExecutionResult) -> None:
    message = _unqueued(result)
    shown = f"{name}: {result.status.value}, {result.err_category}, {str(result.err_message)[:500]}"
    assert result.status is expected.status, shown
    assert result.err_category is expected.category, shown
    if isinstance(expected.message, re.Pattern):
        assert message is not None, shown
        assert expected.message.fullmatch(message), shown
    else:
        assert message == expected.message, shown
    found = None if result.sample is None else _comparable_sample(result.sample)
    wanted = None if expected.sample is None else _comparable_sample(expected.sample)
    assert found == wanted, name


def _unqueued(result: ExecutionResult) -> str | None:
    return None if result.err_message is None else _QUEUED.sub("", result.err_message)


def _comparable_sample(sample: RolloutSample) -> dict[str, Any]:
    fields = {name: getattr(sample, name) for name in RolloutSample.model_fields}
    return {name: _exact(value) for name, value in fields.items()}


def _exact(value: Any) -> Any:
    """Make values of unlike types unequal (1, 1.0 and True), and NaN equal to itself."""
    if isinstance(value, Mapping):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    if value is None or type(value) is str:
        return value
    return f"{type(value).__name__} {value!r}"
