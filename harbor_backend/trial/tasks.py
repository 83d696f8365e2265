"""Checking that a directory is a task that can be run, before anything starts."""

import logging
from enum import StrEnum
from pathlib import Path

from harbor.models.task.config import TaskConfig, VerifierEnvironmentMode
from harbor.models.task.verifier_mode import resolve_step_verifier_mode, resolve_task_verifier_mode

from harbor_backend.errors import HarborBackendError
from harbor_backend.trial.entries import check_entries
from osmosis_ai.rollout.container.files import ARTIFACTS_DIR
from osmosis_ai.rollout.types.status import RolloutErrorCategory

logger = logging.getLogger(__name__)


class TaskMode(StrEnum):
    """Where a rollout's instruction comes from: its prompt, or its task."""

    TEMPLATE = "template"
    DATASET = "dataset"


class TaskError(HarborBackendError, ValueError):
    """A task cannot be run as it is; the text says which, why, and what to do."""

    category = RolloutErrorCategory.VALIDATION_ERROR
    phase = "setup"


def check_task(path: Path, *, needs_instruction: bool) -> TaskConfig:
    """Return the task's configuration once the directory is fit to be run.

    Raises:
        TaskError: it is no directory, has no valid ``task.toml``, holds a link
            that leaves it, or lacks an instruction that the mode needs.
    """
    if not path.is_dir():
        raise TaskError(f"Task directory {path} does not exist; check tasks_dir or the task's id")
    config_path = path / "task.toml"
    if not config_path.is_file():
        raise TaskError(
            f"{path} is no task: it has no task.toml. In dataset mode tasks_dir is the folder "
            "that holds the tasks"
        )
    try:
        check_entries(path)
    except (OSError, ValueError) as exc:
        raise TaskError(f"Task {path.name} ({path}) cannot be copied: {exc}") from exc
    try:
        config = TaskConfig.model_validate_toml(config_path.read_text())
    except (OSError, ValueError) as exc:
        raise TaskError(f"{config_path} is not valid: {exc}") from exc
    if needs_instruction and not config.steps and not (path / "instruction.md").is_file():
        raise TaskError(
            f"{path} has no instruction.md, and dataset mode does not use the rollout's prompt: "
            "add one, or use template mode"
        )
    return config


def find_tasks(tasks_dir: Path) -> list[str]:
    """Return the ids of the tasks directly in a folder, sorted."""
    if not tasks_dir.is_dir():
        raise TaskError(f"tasks_dir {tasks_dir} does not exist")
    return sorted(path.parent.name for path in tasks_dir.glob("*/task.toml"))


def notes_for(path: Path, config: TaskConfig) -> tuple[str, ...]:
    """What the author of a task should know; each is logged once in the life of the process."""
    if not _hides_the_answer(path, config):
        return ()
    note = (
        f"Task {path.name} is verified in a sandbox of its own and declares no artifacts: nothing "
        f"that the agent makes outside of {ARTIFACTS_DIR} arrives there. Name the files in "
        "artifacts = […] of its task.toml, or leave out environment_mode = 'separate'"
    )
    if str(path) not in _told:
        _told.add(str(path))
        logger.warning("%s", note)
    return (note,)


_told: set[str] = set()
"""Tasks whose authors were told, by path."""


def _hides_the_answer(path: Path, config: TaskConfig) -> bool:
    """Whether a separate verifier sees nothing of what an instructed agent does."""
    if config.artifacts:
        return False
    separate = VerifierEnvironmentMode.SEPARATE
    if not config.steps:
        alone, folders = resolve_task_verifier_mode(config) is separate, [path]
    else:
        steps = [
            step
            for step in config.steps
            if resolve_step_verifier_mode(config, step) is separate and not step.artifacts
        ]
        alone, folders = bool(steps), [path / "steps" / step.name for step in steps]
    return alone and not any(_publishes(folder / "instruction.md") for folder in folders)


def _publishes(instruction: Path) -> bool:
    """Whether an instruction sends its agent to where everything is collected."""
    try:
        return ARTIFACTS_DIR in instruction.read_text(errors="replace")
    except OSError:
        return False
