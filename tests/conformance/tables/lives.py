"""Callbacks, status and cancellation over a rollout's life."""

from typing import Any

from osmosis_ai.common.observer import AGENT, GRADING, QUEUE
from osmosis_ai.rollout import RolloutStatus
from tests.conformance.life import Life, Watched

_WORKFLOW = ("workflow", "success", "running")
_UNHEARD = "ConnectionError: nobody hears of the "


def _ended(
    status: RolloutStatus, reward: float | None = None, message: str | None = None
) -> dict[str, Any]:
    return {"status": status, "reward": reward, "err_message": message}


_CANCELLED = _ended(RolloutStatus.CANCELLED, message="The rollout was cancelled")

LIVES = [
    Life(
        "life-of-a-success-that-nobody-hears-of",
        "timing:Quick",
        Watched(
            told=[_WORKFLOW, ("grader", "success", "grading")],
            raised=f"{_UNHEARD}workflow",
            ended=_ended(RolloutStatus.SUCCESS, reward=1.0),
        ),
        "graders:One",
        raising=frozenset({"workflow", "grader"}),
    ),
    Life(
        "life-of-a-failure-that-nobody-hears-of",
        "faults:ValueErrorRaised",
        Watched(
            told=[("workflow", "failure", "running")],
            raised=f"{_UNHEARD}workflow",
            ended=_ended(RolloutStatus.FAILURE, message="the value is wrong"),
        ),
        "graders:One",
        raising=frozenset({"workflow"}),
    ),
    Life(
        "life-of-a-grading-that-nobody-hears-of",
        "timing:Quick",
        Watched(
            told=[_WORKFLOW, ("grader", "success", "grading")],
            raised=f"{_UNHEARD}grader",
            ended=_ended(RolloutStatus.SUCCESS, reward=1.0),
        ),
        "graders:One",
        raising=frozenset({"grader"}),
    ),
    Life(
        "life-cancelled-in-the-queue",
        "timing:Sleeping",
        Watched(
            told=[("workflow", "cancelled", "queued")],
            seen="queued",
            disposition="cancelled_queued",
            ended=_CANCELLED,
        ),
        cancelled_in=QUEUE,
    ),
    Life(
        "life-cancelled-while-the-workflow-runs",
        "timing:Swallowing",
        Watched(
            told=[("workflow", "cancelled", "running")],
            seen="running",
            disposition="cancelled_running",
            ended=_CANCELLED,
        ),
        "graders:One",
        cancelled_in=AGENT,
    ),
    Life(
        "life-cancelled-while-grading",
        "timing:Quick",
        Watched(
            told=[_WORKFLOW, ("grader", "cancelled", "grading")],
            seen="grading",
            disposition="cancelled_running",
            ended=_CANCELLED,
        ),
        "timing:SwallowingGrader",
        cancelled_in=GRADING,
    ),
    Life(
        "life-cancelled-with-its-task",
        "timing:Sleeping",
        Watched(told=[], seen="running", raised="CancelledError: ", ended=None),
        cancelled_in=AGENT,
        from_outside=True,
    ),
]
