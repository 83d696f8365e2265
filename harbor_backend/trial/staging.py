"""The private copy of a task that one trial runs."""

import json
import shutil
from pathlib import Path

from harbor.models.task.config import TaskConfig
from harbor.models.task.task import Task

from harbor_backend.core.spec import StagedTask
from harbor_backend.core.task_file import deny_network_by_default
from harbor_backend.places.harbor.compose import has_services
from harbor_backend.trial.entries import keep_links_inside
from harbor_backend.trial.tasks import TaskError, TaskMode, notes_for
from osmosis_ai.rollout.types.messages import Messages

_PLACEHOLDER = """#!/bin/sh
# Harbor expects a test script in every task. This rollout is graded by an SDK grader instead.
exit 1
"""


def stage_task(
    source: Path, target: Path, mode: TaskMode, prompt: Messages, *, in_place: bool = False
) -> StagedTask:
    """Copy a checked task to ``target`` and fit the copy to the rollout.

    Template mode writes the prompt as the instruction, and denies network
    access unless the task says what it wants. ``in_place`` leaves a task where it
    lies if it has services and nothing has to be fitted.

    Raises:
        TaskError: Harbor does not accept the task.
    """
    try:
        if in_place and mode is TaskMode.DATASET and (found := _as_it_lies(source)) is not None:
            return found
    except (OSError, ValueError, RuntimeError) as exc:
        raise _refused(source, exc) from exc
    shutil.copytree(source, target, symlinks=True)
    keep_links_inside(target, source)
    try:
        if mode is TaskMode.TEMPLATE:
            instruction = json.dumps(prompt, indent=2, ensure_ascii=True)
            _replace_text(target / "instruction.md", instruction)
            deny_network_by_default(target)
        _check_steps(target)  # else one that is missing looks like missing tests
        has_tests = _has_tests(target)
        if not has_tests:
            tests = target / "tests"
            tests.mkdir(exist_ok=True)
            script = tests / "test.sh"
            _replace_text(script, _PLACEHOLDER)
            script.chmod(0o755)
        config = Task(target, disable_verification=True).config
        notes = notes_for(source, config) if has_tests else ()
        return StagedTask(target, config, has_tests, source.resolve(), notes)
    except (OSError, ValueError, RuntimeError) as exc:
        raise _refused(source, exc) from exc


def _refused(source: Path, exc: Exception) -> TaskError:
    return TaskError(f"Harbor does not accept the task {source}: {exc}")


def _as_it_lies(source: Path) -> StagedTask | None:
    """The task itself, where its compose files mean what they say; ``None``: copy it."""
    _check_steps(source)
    config = Task(source, disable_verification=True).config
    if not has_services(config, source) or not _has_tests(source):
        return None
    return StagedTask(source, config, has_tests=True, notes=notes_for(source, config))


def _replace_text(path: Path, text: str) -> None:
    """Write a file, and not through a link that is in its place."""
    if path.is_symlink():
        path.unlink()
    path.write_text(text)


def _check_steps(path: Path) -> None:
    config = TaskConfig.model_validate_toml((path / "task.toml").read_text())
    for step in config.steps or []:
        instruction = Path("steps", step.name, "instruction.md")
        if not (path / instruction).is_file():
            raise ValueError(f"its step {step.name!r} has no {instruction}")


def _has_tests(path: Path) -> bool:
    """Whether the task has a reward source of its own, by Harbor's own rules."""
    try:
        Task(path)
    except FileNotFoundError:
        return False
    return True
