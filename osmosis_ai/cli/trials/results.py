"""What came of the trials, and what that means for the exit code. Decisions only, no I/O."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from osmosis_ai.cli.errors import FAILED
from osmosis_ai.cli.trials.plan import Plan, Trial
from osmosis_ai.rollout.types.execution import ExecutionOutcome
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus

_BEFORE_THE_AGENT = {None, "setup", "environment_setup", "agent_setup"}


@dataclass(frozen=True)
class Kept:
    """A sandbox that stays, and the command to enter it."""

    name: str
    state: str
    enter: str


@dataclass(frozen=True)
class TrialReport:
    """One finished trial.

    ``seconds`` leave out the time it waited; ``could_run`` is false when its
    agent never had its chance.
    """

    trial: Trial
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
    logs: str | None = None
    artifacts: str | None = None
    trajectory: str | None = None
    kept: list[Kept] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """The status in one word: ``success``, or the failure's category."""
        return self.category or self.status


def trial_report(trial: Trial, outcome: ExecutionOutcome, seconds: float) -> TrialReport:
    """Read a report off an outcome; ``seconds`` stand in where the trial took no time itself."""
    result = outcome.result
    sample = result.sample
    extra = result.extra_fields
    timings = dict(extra.get("timings_sec") or {})
    reward = None if sample is None else sample.reward
    return TrialReport(
        trial=trial,
        status=str(result.status),
        category=None if result.err_category is None else str(result.err_category),
        message=result.err_message,
        phase=extra.get("phase"),
        reward=reward,
        rewards={} if sample is None else dict(sample.extra_fields.get("rewards") or {}),
        seconds=round(timings.get("total", seconds), 3),
        timings_sec=timings,
        environment=extra.get("environment"),
        could_run=_could_run(outcome),
    )


def _could_run(outcome: ExecutionOutcome) -> bool:
    if outcome.result.err_category is RolloutErrorCategory.INFRASTRUCTURE_ERROR:
        return False
    failed = outcome.workflow.status is not RolloutStatus.SUCCESS
    return not (failed and outcome.workflow.extra_fields.get("phase") in _BEFORE_THE_AGENT)


def mean_reward(reports: Sequence[TrialReport]) -> float | None:
    """The mean over all trials, where one without a reward counts as 0; ``None`` for no trials."""
    return statistics.fmean(r.reward or 0.0 for r in reports) if reports else None


def exit_code(reports: Sequence[TrialReport], threshold: float | None) -> int:
    """0, or 1 below the threshold or when a trial could not be run."""
    if not all(report.could_run for report in reports):
        return FAILED
    mean = mean_reward(reports)
    return FAILED if threshold is not None and (mean is None or mean < threshold) else 0


def by_task(plan: Plan, reports: Sequence[TrialReport]) -> dict[str, list[TrialReport]]:
    """The reports of each task in the order of the attempts."""
    ordered = sorted(reports, key=lambda report: report.trial.attempt)
    return {task: [r for r in ordered if r.trial.task == task] for task in plan.tasks}


def as_json(plan: Plan, reports: Sequence[TrialReport], seconds: float) -> dict[str, Any]:
    """The document that ``--json`` prints."""
    code = exit_code(reports, plan.threshold)
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
        "n_trials": len(reports),
        "mean_reward": mean_reward(reports),
        "failed": sum(report.status != RolloutStatus.SUCCESS for report in reports),
        "could_not_run": sum(not report.could_run for report in reports),
        "passed": code == 0,
        "seconds": round(seconds, 3),
        "tasks": [
            {"task": task, "mean_reward": mean_reward(own), "trials": [*map(_trial_json, own)]}
            for task, own in by_task(plan, reports).items()
        ],
    }


def _trial_json(report: TrialReport) -> dict[str, Any]:
    document = asdict(report)
    trial = document.pop("trial")
    del trial["task"]
    return {**trial, **document}
