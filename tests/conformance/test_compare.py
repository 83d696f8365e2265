"""The comparison itself: it tells apart what must be equal, and nothing else."""

import math
from typing import Any

import pytest

from osmosis_ai.rollout import (
    ExecutionOutcome,
    ExecutionResult,
    RolloutErrorCategory,
    RolloutSample,
    RolloutStatus,
)
from tests.conformance.compare import assert_outcome, comparable
from tests.conformance.model import AGENT, Case, failed, matches, ok, said, sample

CASE = Case("case", "returns:MessageList", ok(), "graders:One", ok(sample(reward=1.0)))
FAILED = Case("case", "faults:RuntimeErrorRaised", failed(AGENT, matches(r"it broke at \d+")))


def outcome(of: Case, **changes: Any) -> ExecutionOutcome:
    """The outcome that ``of`` expects, with ``changes`` to the workflow's result."""
    workflow = ExecutionResult(
        status=of.expected.status,
        sample=of.expected.sample,
        err_message="it broke at 12" if of is FAILED else None,
        err_category=of.expected.category,
    ).model_copy(update=changes)
    graded = of.graded
    grader = graded and ExecutionResult(status=graded.status, sample=graded.sample)
    return ExecutionOutcome(workflow=workflow, grader=grader)


@pytest.mark.parametrize("case", [CASE, FAILED])
def test_what_is_expected_passes(case: Case) -> None:
    assert_outcome(case, outcome(case))


def test_time_spent_queued_is_the_machines_and_not_the_backends() -> None:
    late = Case("case", "timing:Sleeping", failed(AGENT, "it was late by 1s"))
    queued = outcome(late, err_message="it was late by 1s (0.2s of it spent queued)")
    assert_outcome(late, queued)
    assert comparable(queued) == comparable(outcome(late, err_message="it was late by 1s"))


@pytest.mark.parametrize(
    ("case", "changes"),
    [
        (CASE, {"status": RolloutStatus.FAILURE}),
        (CASE, {"err_message": ""}),
        (CASE, {"err_category": AGENT}),
        (CASE, {"sample": None}),
        (CASE, {"sample": sample([])}),
        (CASE, {"sample": sample(label=None)}),
        (CASE, {"sample": sample(reward=0.0)}),
        (CASE, {"sample": sample(metrics={"x": 1})}),
        (CASE, {"sample": sample(remove_sample=True)}),
        (CASE, {"sample": sample(extra_fields={"x": 1})}),
        (CASE, {"sample": sample(trajectory_messages=None)}),
        (FAILED, {"err_message": None}),
        (FAILED, {"err_message": "it broke at noon"}),
        (FAILED, {"err_message": "and it broke at 12"}),
        (FAILED, {"err_category": RolloutErrorCategory.TIMEOUT}),
        (FAILED, {"sample": sample()}),
    ],
)
def test_any_other_field_fails(case: Case, changes: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        assert_outcome(case, outcome(case, **changes))
    assert comparable(outcome(case, **changes)) != comparable(outcome(case))


def test_a_missing_and_an_unwanted_grading_fail() -> None:
    ungraded = outcome(CASE).model_copy(update={"grader": None})
    with pytest.raises(AssertionError, match="grading should have followed"):
        assert_outcome(CASE, ungraded)
    graded = outcome(FAILED).model_copy(update={"grader": outcome(CASE).grader})
    with pytest.raises(AssertionError, match="nothing should be graded"):
        assert_outcome(FAILED, graded)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, 1.0), (1, True), (0.0, -0.0), (b"a", "a"), (None, "None"), (math.inf, math.nan)],
)
def test_values_of_unlike_types_differ(left: Any, right: Any) -> None:
    first, second = (
        comparable(outcome(CASE, sample=said([{"deep": value}]))) for value in (left, right)
    )
    assert first != second


def test_nan_equals_nan() -> None:
    first, second = (
        comparable(outcome(CASE, sample=RolloutSample(messages=[{"a": float("nan")}])))
        for _ in range(2)
    )
    assert first == second


def test_diagnostics_and_places_do_not_count() -> None:
    here = "no file '/home/me/rollouts/a b.txt', see https://x.test/y and a/b"
    there = "no file '/logs/rollouts/a b.txt', see https://x.test/y and a/b"
    first = outcome(FAILED, err_message=here, extra_fields={"timings_sec": {"total": 1.5}})
    second = outcome(FAILED, err_message=there)
    assert comparable(first) == comparable(second)
    message = comparable(first)["workflow"]["message"]
    assert message == "no file '<path> b.txt', see https://x.test/y and a/b"
