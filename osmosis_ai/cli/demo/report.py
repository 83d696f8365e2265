"""What the demo prints: progress, a table, and what it proves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from osmosis_ai.cli.demo.jobs import Job, saved_at

_PHASES = {"start": "environment_setup", "agent": "agent", "grade": "verifier", "total": "total"}


@contextmanager
def progress(console: Console, jobs: list[Job]) -> Iterator[Any]:
    """Show one bar per job; yields ``advance(job)``."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bars:
        rows = {job.title: bars.add_task(job.title, total=len(job.requests)) for job in jobs}
        yield lambda job: bars.advance(rows[job.title])


def table(jobs: list[Job]) -> Table:
    """One row per job."""
    shown = Table(title="Graded rollouts", padding=(0, 1))
    shown.add_column("backend", no_wrap=True)
    for name in ("n", "reward", "failed", *_PHASES, "n/min"):
        shown.add_column(name, justify="right", no_wrap=True)
    for job in jobs:
        rewards = [reward for reward in job.rewards if reward is not None]
        mean = f"{sum(rewards) / len(rewards):.3f}" if rewards else "-"
        medians = [job.median(phase) for phase in _PHASES.values()]
        shown.add_row(
            job.title,
            str(len(job.requests)),
            mean,
            str(len(job.requests) - len(rewards)),
            *("-" if value is None else f"{value:.2f}" for value in medians),
            f"{len(job.requests) / job.elapsed * 60:.0f}",
        )
    shown.caption = "n: rollouts; reward: mean; start, agent, grade, total: median seconds"
    return shown


def verdicts(jobs: list[Job]) -> list[tuple[bool, str]]:
    """What must hold, and whether it does."""
    by_title = {job.title: job for job in jobs}
    found = []
    local, harbor = by_title.get("LocalBackend"), by_title.get("HarborBackend")
    if local is not None:
        mixed = {0.0, 1.0} <= {reward for reward in local.rewards if reward is not None}
        found.append((None not in local.rewards and mixed, "some answers are right and some wrong"))
    if local is not None and harbor is not None:
        found.append(
            (
                local.rewards == harbor.rewards and None not in harbor.rewards,
                "LocalBackend and HarborBackend give the same rewards, sample by sample",
            )
        )
    found += [
        (
            all(reward == job.expected for reward in job.rewards),
            f"{job.title}: every reward is {job.expected}",
        )
        for job in jobs
        if job.expected is not None
    ]
    return found


def failures(jobs: list[Job]) -> list[str]:
    """A line per rollout that failed."""
    return [
        f"{request.id}: {result.err_category}: {result.err_message}"
        for job in jobs
        for request in job.requests
        if (result := job.outcomes[request.id].result).status != "success"
    ]


def as_json(jobs: list[Job]) -> dict[str, Any]:
    """The same for a program."""
    return {
        "jobs": [
            {
                "backend": job.title,
                "rewards": job.rewards,
                "seconds": round(job.elapsed, 3),
                "median_sec": {name: job.median(phase) for name, phase in _PHASES.items()},
                "rollouts": [str(saved_at(request.id)) for request in job.requests],
            }
            for job in jobs
        ],
        "verdicts": [{"holds": holds, "what": what} for holds, what in verdicts(jobs)],
        "failures": failures(jobs),
    }


def saved(jobs: list[Job]) -> list[str]:
    """Where the files of one rollout per job are, and of all."""
    lines = []
    for job in jobs:
        folder = saved_at(job.requests[0].id)
        files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name[0] != ".")
        lines += [str(path) for path in files if path.name in {"trajectory.json", "turns.txt"}]
    return lines
