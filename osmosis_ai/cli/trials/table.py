"""The table at the end of a run, and what belongs below it."""

import os
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from osmosis_ai.cli.output import cause, duration, result_console
from osmosis_ai.cli.trials.plan import Plan
from osmosis_ai.cli.trials.results import (
    Ending,
    TrialReport,
    by_task,
    counts,
    mean_reward,
    reaches,
)

_NO_REWARD = "-"


def print_report(plan: Plan, reports: Sequence[TrialReport], seconds: float) -> None:
    """Print one row per task, the mean over all, failures, and sandboxes that stay."""
    from rich.table import Table

    console = result_console()
    table = Table(box=None, pad_edge=False)
    for title in ("TASK", "REWARDS", "MEAN", "STATUS", "SECONDS", "LOGS"):
        right = title in {"MEAN", "SECONDS"}
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for task, own in by_task(plan, reports).items():
        table.add_row(
            task,
            " ".join(_NO_REWARD if r.reward is None else f"{r.reward:g}" for r in own),
            _mean(own),
            _verdicts(own),
            f"{statistics.median(r.seconds for r in own):.1f}" if own else "",
            _logs(plan, own),
        )
    console.print(table)
    console.print()
    for line in (*_conclusion(plan, reports, seconds), *_failures(reports), *_kept(reports)):
        console.print(line, soft_wrap=True)


def _mean(reports: Sequence[TrialReport]) -> str:
    mean = mean_reward(reports)
    return _NO_REWARD if mean is None else f"{mean:.3f}"


def _verdicts(reports: Sequence[TrialReport]) -> str:
    counts = Counter(report.verdict for report in reports)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def _logs(plan: Plan, reports: Sequence[TrialReport]) -> str:
    """Where the logs of a task's trials are, as a pattern that a shell understands."""
    there = [report for report in reports if report.logs is not None]
    if not there:
        return "none"
    attempts = [str(report.trial.attempt) for report in there]
    task, _, run = there[0].trial.rollout_id.rpartition(f"-{attempts[0]}-")
    which = attempts[0] if len(attempts) == 1 else f"{{{','.join(attempts)}}}"
    return f"{_short(plan.output)}/{task}-{which}-{run}/logs"


def _conclusion(plan: Plan, reports: Sequence[TrialReport], seconds: float) -> list[str]:
    ended = counts(reports, len(plan.tasks) * plan.attempts)
    unrun = sum(not report.could_run for report in reports)
    text = f"mean reward {_mean(reports)} over {_scored(ended)} in {duration(seconds)}"
    if plan.threshold is not None:
        reached = reaches(reports, plan.threshold)
        text += f"; threshold {plan.threshold:g} {'reached' if reached else 'missed'}"
    if failed := ended[Ending.AGENT_FAILED]:
        text += f"; {failed} scored although the agent failed"
    if lost := ended[Ending.NO_RESULT]:
        text += f"; {lost} without a result" + (f", {unrun} could not be run" if unrun else "")
    if again := sum(report.runs - 1 for report in reports):
        text += f"; {again} run again"
    if waiting := ended["not_run"]:
        text += f"; {waiting} not run"
    return [text]


def _scored(ended: dict[str, int]) -> str:
    asked_for = sum(ended.values())
    scored = ended[Ending.SCORED] + ended[Ending.AGENT_FAILED]
    trials = "1 trial" if asked_for == 1 else f"{asked_for} trials"
    return trials if scored == asked_for else f"{scored} scored of {trials}"


def _failures(reports: Sequence[TrialReport]) -> list[str]:
    return [
        f"{r.trial.task} #{r.trial.attempt}: {r.verdict}: {cause(r.message or 'no message')}"
        for r in reports
        if r.category is not None or r.message is not None
    ]


def _kept(reports: Sequence[TrialReport]) -> list[str]:
    lines = [
        f"{report.trial.task} #{report.trial.attempt} ({kept.state}): {kept.enter}"
        for report in reports
        for kept in report.kept
    ]
    if not lines:
        return []
    return ["", "Sandboxes kept (remove them with `osmosis sandboxes rm NAME`):", *lines]


def _short(path: Path) -> str:
    home = Path.home()
    return f"~{os.sep}{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
