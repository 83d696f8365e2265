"""What came of the trials, and what that means for the exit code. Decisions only, no I/O."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from osmosis_ai.cli.errors import FAILED
from osmosis_ai.cli.trials.plan import Plan, Trial
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionResult
from osmosis_ai.rollout.types.status import RolloutStatus

_BEFORE_THE_AGENT = {None, "setup", "environment_setup", "agent_setup"}


class Ending(StrEnum):
    """How a trial ended."""

    SCORED = "scored"
    AGENT_FAILED = "scored_agent_failed"
    NO_RESULT = "no_result"


SUSPECT = "The tests ran where the agent left what may decide over them"


@dataclass(frozen=True)
class Kept:
    """A sandbox that stays, and the command to enter it."""

    name: str
    state: str
    enter: str


@dataclass(frozen=True)
class TrialReport:
    """One finished trial.

    ``ending`` says whether its ``reward`` counts; one of an agent that failed does,
    and ``category`` and ``message`` say how it failed. ``seconds`` leave out the time it
    waited; ``could_run`` is false when its agent never had its chance, and
    ``may_run_again`` true when neither agent nor task were at fault. ``runs`` counts
    how often it was begun: more than once where it was tried again. ``integrity`` tells
    what an agent left where its tests ran, and a ``message`` says so of a suspect one.
    """

    trial: Trial
    ending: Ending
    status: str
    category: str | None
    message: str | None
    phase: str | None
    reward: float | None
    rewards: dict[str, Any]
    seconds: float
    timings_sec: dict[str, float]
    environment: str | None
    could_run: bool
    may_run_again: bool = False
    runs: int = 1
    integrity: dict[str, Any] | None = None
    logs: str | None = None
    artifacts: str | None = None
    trajectory: str | None = None
    kept: list[Kept] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The status in one word: ``success``, or the failure's category."""
        return self.category or self.status

    @property
    def is_scored(self) -> bool:
        """Whether its reward counts."""
        return self.ending is not Ending.NO_RESULT


def trial_report(trial: Trial, outcome: ExecutionOutcome, seconds: float) -> TrialReport:
    """Read a report off an outcome; ``seconds`` stand in where the trial took no time itself."""
    result = outcome.result
    sample, category = result.sample, result.err_category
    extra = result.extra_fields
    timings = dict(extra.get("timings_sec") or {})
    return TrialReport(
        trial=trial,
        ending=_ending(result),
        status=str(result.status),
        category=None if category is None else str(category),
        message=result.err_message or suspicion(extra.get("integrity")),
        phase=extra.get("phase"),
        reward=sample.reward if sample is not None and result.is_scored else None,
        rewards={} if sample is None else dict(sample.extra_fields.get("rewards") or {}),
        seconds=round(timings.get("total", seconds), 3),
        timings_sec=timings,
        environment=extra.get("environment"),
        could_run=_could_run(outcome),
        may_run_again=category is not None and category.may_run_again,
        runs=max(1, extra.get("runs", 1)),
        integrity=extra.get("integrity"),
    )


def suspicion(integrity: dict[str, Any] | None) -> str | None:
    """What is to be told of an agent that left what may decide over its tests."""
    if integrity is None or integrity["status"] != "suspect":
        return None
    findings = integrity["findings"]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return f"{SUSPECT}: {findings[0]}{more}"


def _ending(result: ExecutionResult) -> Ending:
    if not result.is_scored:
        return Ending.NO_RESULT
    return Ending.SCORED if result.err_category is None else Ending.AGENT_FAILED


def _could_run(outcome: ExecutionOutcome) -> bool:
    category = outcome.result.err_category
    if category is not None and category.may_run_again:
        return False
    failed = outcome.workflow.status is not RolloutStatus.SUCCESS
    return not (failed and outcome.workflow.extra_fields.get("phase") in _BEFORE_THE_AGENT)


def mean_reward(reports: Sequence[TrialReport]) -> float | None:
    """The mean over the scored trials; ``None`` when there are none."""
    rewards = [r.reward for r in reports if r.is_scored and r.reward is not None]
    return statistics.fmean(rewards) if rewards else None


def mean_rewards(reports: Sequence[TrialReport]) -> dict[str, float]:
    """The mean of every named reward over the trials whose tests wrote it."""
    written: dict[str, list[float]] = {}
    for report in reports:
        for name, value in report.rewards.items():
            if isinstance(value, int | float) and math.isfinite(value):
                written.setdefault(name, []).append(value)
    return {name: statistics.fmean(values) for name, values in sorted(written.items())}


def pass_rate(plan: Plan, reports: Sequence[TrialReport]) -> float | None:
    """The share of the scored trials whose reward passes; ``None`` when there are none."""
    rewards = [r.reward for r in reports if r.is_scored and r.reward is not None]
    passed = sum(reward >= plan.passing_reward for reward in rewards)
    return passed / len(rewards) if rewards else None


def reaches(reports: Sequence[TrialReport], threshold: float) -> bool:
    """Whether every trial is scored, and their mean is at the threshold or above.

    The mean leaves out a trial without a result, which must not help to reach it.
    """
    mean = mean_reward(reports)
    return mean is not None and mean >= threshold and all(r.is_scored for r in reports)


def exit_code(reports: Sequence[TrialReport], threshold: float | None) -> int:
    """0, or 1 when a trial could not be run or the threshold was not reached."""
    if not all(report.could_run for report in reports):
        return FAILED
    return FAILED if threshold is not None and not reaches(reports, threshold) else 0


def by_task(plan: Plan, reports: Sequence[TrialReport]) -> dict[str, list[TrialReport]]:
    """The reports of each task in the order of the attempts."""
    ordered = sorted(reports, key=lambda report: report.trial.attempt)
    return {task: [r for r in ordered if r.trial.task == task] for task in plan.tasks}


def counts(reports: Sequence[TrialReport], asked_for: int) -> dict[str, int]:
    """How many trials ended how, and how many did not run; together all that were asked for."""
    ended = {str(e): sum(report.ending is e for report in reports) for e in Ending}
    return {**ended, "not_run": asked_for - len(reports)}


def as_json(plan: Plan, reports: Sequence[TrialReport], seconds: float) -> dict[str, Any]:
    """The document that ``--json`` prints."""
    code = exit_code(reports, plan.threshold)
    asked_for = len(plan.tasks) * plan.attempts
    return {
        "tasks_dir": str(plan.tasks_dir),
        "agent": plan.agent,
        "grader": plan.grader,
        "model": plan.model,
        "environment": str(plan.environment),
        "attempts": plan.attempts,
        "n_concurrent": plan.n_concurrent,
        "threshold": plan.threshold,
        "output": str(plan.output),
        "n_asked_for": asked_for,
        "n_trials": len(reports),
        "n_scored": sum(report.is_scored for report in reports),
        "endings": counts(reports, asked_for),
        "mean_reward": mean_reward(reports),
        "mean_rewards": mean_rewards(reports),
        "pass_rate": pass_rate(plan, reports),
        "failed": sum(report.category is not None for report in reports),
        "n_retries": sum(report.runs - 1 for report in reports),
        "could_not_run": sum(not report.could_run for report in reports),
        "passed": code == 0,
        "seconds": round(seconds, 3),
        "tasks": [
            {
                "task": task,
                "n_scored": sum(report.is_scored for report in own),
                "mean_reward": mean_reward(own),
                "trials": [*map(_trial_json, own)],
            }
            for task, own in by_task(plan, reports).items()
        ],
    }


def _trial_json(report: TrialReport) -> dict[str, Any]:
    document = asdict(report)
    trial = document.pop("trial")
    del trial["task"]
    return {**trial, **document}
