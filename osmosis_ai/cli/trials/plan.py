"""From a command line to a checked plan: all that can be refused is refused here."""

import math
import os
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from osmosis_ai.cli.errors import CliError, harbor_extra
from osmosis_ai.cli.trials.command import EnvironmentName, Keep
from osmosis_ai.cli.trials.remote import REMOTE, Remote, make_remote

_EMBEDDED = "embedded/"


@dataclass(frozen=True)
class Trial:
    """One attempt at one task; ``attempt`` counts from 1."""

    task: str
    attempt: int
    rollout_id: str


@dataclass(frozen=True)
class Plan:
    """What is to be run, with every name resolved and every task checked."""

    tasks_dir: Path
    tasks: tuple[str, ...]
    agent: str
    grader: str | None
    model: str | None
    environment: EnvironmentName
    remote: Remote | None
    n_concurrent: int
    attempts: int
    threshold: float | None
    keep: Keep
    output: Path
    write_report: bool
    needs_compose: tuple[str, ...]

    @property
    def passing_reward(self) -> float:
        """The reward from which on a single trial counts as passed."""
        return 1.0 if self.threshold is None else self.threshold

    def trials(self) -> list[Trial]:
        """The trials in the order in which they start: every task once, then again."""
        run = uuid.uuid4().hex[:8]
        return [
            Trial(task, attempt, f"{task}-{attempt}-{run}")
            for attempt in range(1, self.attempts + 1)
            for task in self.tasks
        ]


def make_plan(
    tasks: Path,
    *,
    agent: str,
    grader: str | None,
    model: str | None,
    environment: EnvironmentName,
    options: Sequence[str],
    agent_base_url: str | None,
    agent_bind: str | None,
    n_concurrent: int,
    attempts: int,
    only: Sequence[str],
    threshold: float | None,
    keep: Keep,
    output: Path | None,
) -> Plan:
    """Check a command line.

    Raises:
        CliError: something cannot work; the text says what, where, and the remedy.
    """
    with harbor_extra("osmosis trials run"):
        from harbor_backend.environments.choose import needs_harbor
        from harbor_backend.tasks import TaskError, check_task
        from osmosis_ai.rollout.artifacts import artifact_root
    # Classes are named as they are for `python -m`: from the current directory.
    sys.path.insert(0, os.getcwd())
    if threshold is not None and not math.isfinite(threshold):
        raise CliError(f"--threshold {threshold} is not a finite number")
    remote = make_remote(environment, options, agent_base_url, agent_bind)
    if remote is not None and keep is not Keep.NONE:
        raise CliError(f"--keep {keep} is for sandboxes of this machine, not of {environment}")
    tasks_dir, found = _find(tasks)
    chosen = _only(tasks_dir, found, only)
    compose = []
    for name in chosen:
        try:
            config = check_task(tasks_dir / name, needs_instruction=True)
        except TaskError as exc:
            raise CliError(_one_line(exc)) from exc
        if needs_harbor(config, tasks_dir / name / "environment"):
            compose.append(name)
    if compose and environment in REMOTE:
        raise CliError(
            f"{', '.join(compose)} cannot run in {environment}, which runs one container per task "
            "with or without a network: choose other tasks with --task"
        )
    return Plan(
        tasks_dir=tasks_dir,
        tasks=chosen,
        agent=agent,
        grader=grader,
        model=_checked_model(model, agent),
        environment=environment,
        remote=remote,
        n_concurrent=n_concurrent,
        attempts=attempts,
        threshold=threshold,
        keep=keep,
        output=artifact_root() if output is None else output.expanduser().absolute(),
        write_report=output is not None,
        needs_compose=chosen if environment is EnvironmentName.HARBOR_DOCKER else tuple(compose),
    )


def _find(path: Path) -> tuple[Path, list[str]]:
    """The folder of tasks, and their names; one task's own directory is a folder of one."""
    from harbor_backend.tasks import find_tasks

    folder = path.expanduser().resolve()
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise CliError(f"{path} {what}: give a folder of Harbor tasks, or one task's directory")
    if (folder / "task.toml").is_file():
        return folder.parent, [folder.name]
    found = find_tasks(folder)
    if not found:
        raise CliError(
            f"{path} holds no task: neither it nor a directory in it has a task.toml. Give a "
            "folder of Harbor tasks, or one task's directory"
        )
    return folder, found


def _only(tasks_dir: Path, found: Sequence[str], only: Sequence[str]) -> tuple[str, ...]:
    unknown = [name for name in only if name not in found]
    if unknown:
        raise CliError(
            f"--task {unknown[0]} names no task in {tasks_dir}; it has {', '.join(found)}"
        )
    return tuple(name for name in found if not only or name in only)


def _checked_model(model: str | None, agent: str) -> str | None:
    if model is None:
        return None
    if agent in {"oracle", "nop"}:
        raise CliError(
            f"--model is for workflows and agents with a model, and {agent!r} is native without"
        )
    if model.startswith(_EMBEDDED):
        from osmosis_ai.gateway.embedded import make_policy

        name, _, parameters = model.removeprefix(_EMBEDDED).partition("?")
        try:
            make_policy(name, parameters)
        except ValueError as exc:
            raise CliError(f"--model {model}: {_one_line(exc)}") from exc
        return model
    parts = urlsplit(model)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise CliError(
            f"--model {model} is neither the base URL of an OpenAI-compatible server (http://… or "
            "https://…) nor embedded/<policy>"
        )
    return model


def _one_line(exc: Exception) -> str:
    return " ".join(str(exc).split())
