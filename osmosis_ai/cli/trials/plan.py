"""What a run of trials is to do, as values."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmosis_ai.cli.trials.choices import EnvironmentName, Keep
from osmosis_ai.cli.trials.remote import Remote


@dataclass(frozen=True)
class Trial:
    """One attempt at one task; ``attempt`` counts from 1."""

    task: str
    attempt: int
    rollout_id: str


@dataclass(frozen=True)
class Plan:
    """What is to be run, with every name resolved and every task checked.

    ``fetched`` says where tasks are that are no directories of ``tasks_dir``,
    ``problems`` which cannot run, and why.
    """

    tasks_dir: Path
    tasks: tuple[str, ...]
    fetched: Mapping[str, Path]
    problems: Mapping[str, Exception]
    agent: str
    grader: str | None
    model: str | None
    environment: EnvironmentName
    remote: Remote | None
    n_concurrent: int
    attempts: int
    threshold: float | None
    keep: Keep
    force_build: bool
    output: Path
    write_report: bool

    @property
    def passing_reward(self) -> float:
        """The reward from which on a single trial counts as passed."""
        return 1.0 if self.threshold is None else self.threshold

    @property
    def runnable(self) -> list[str]:
        """The tasks that can run, each by its name or by where it is."""
        runs = [task for task in self.tasks if task not in self.problems]
        return [str(self.fetched.get(task, task)) for task in runs]

    def path(self, task: str) -> Path:
        """Where a task is."""
        return self.fetched.get(task, self.tasks_dir / task)

    def metadata(self, task: str) -> dict[str, Any]:
        """How a rollout names its task."""
        fetched = self.fetched.get(task)
        return {"harbor_task_id": task} if fetched is None else {"harbor_task": str(fetched)}

    def trials(self) -> list[Trial]:
        """The trials in the order in which they start: every task once, then again."""
        run = uuid.uuid4().hex[:8]
        return [
            Trial(task, attempt, f"{task}-{attempt}-{run}")
            for attempt in range(1, self.attempts + 1)
            for task in self.tasks
        ]
