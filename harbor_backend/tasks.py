"""Finding the task of a rollout and checking it before anything starts."""

import asyncio
import logging
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from harbor.models.task.config import TaskConfig
from harbor.models.trial.config import TaskConfig as TaskSource
from harbor.tasks.client import TaskClient

logger = logging.getLogger(__name__)

_fetching: dict[str, asyncio.Lock] = {}


class TaskMode(StrEnum):
    """Where a rollout's instruction comes from: its prompt, or its task."""

    TEMPLATE = "template"
    DATASET = "dataset"


class TaskError(ValueError):
    """A task cannot be run as it is; the text says which, why, and what to do."""


async def resolve_task(tasks_dir: Path, mode: TaskMode, metadata: Mapping[str, Any] | None) -> Path:
    """Return the task directory of one rollout.

    ``metadata["harbor_task"]`` wins in both modes: a local path (it begins with
    ``.``, ``/`` or ``~``), a path in ``git_url``, or a registry package
    ``org/name[@ref]``. Dataset mode else needs ``harbor_task_id``.

    Raises:
        TaskError: a key is missing, names nothing, or leaves ``tasks_dir``.
    """
    given = metadata or {}
    reference = given.get("harbor_task")
    if reference is not None:
        return await _referenced(_text(reference, "harbor_task"), given)
    if mode is TaskMode.TEMPLATE:
        return tasks_dir
    task_id = given.get("harbor_task_id")
    if task_id is None:
        raise TaskError(
            "Dataset mode needs metadata['harbor_task_id'] (a directory in tasks_dir) or "
            "metadata['harbor_task'] on every rollout"
        )
    return _inside(tasks_dir, _text(task_id, "harbor_task_id"))


def check_task(path: Path, *, needs_instruction: bool) -> TaskConfig:
    """Return the task's configuration once the directory is fit to be run.

    Raises:
        TaskError: it is no directory, has no valid ``task.toml``, holds a
            symlink, or lacks an instruction that the mode needs.
    """
    if not path.is_dir():
        raise TaskError(f"Task directory {path} does not exist; check tasks_dir or the task's id")
    config_path = path / "task.toml"
    if not config_path.is_file():
        raise TaskError(
            f"{path} is no task: it has no task.toml. In dataset mode tasks_dir is the folder "
            "that holds the tasks"
        )
    _refuse_links(path)
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


def _inside(tasks_dir: Path, task_id: str) -> Path:
    path = (tasks_dir / task_id).resolve()
    if path == tasks_dir.resolve() or not path.is_relative_to(tasks_dir.resolve()):
        raise TaskError(f"harbor_task_id {task_id!r} leaves tasks_dir {tasks_dir}")
    if not path.is_dir():
        raise TaskError(f"harbor_task_id {task_id!r} names no directory in {tasks_dir}")
    return path


async def _referenced(reference: str, metadata: Mapping[str, Any]) -> Path:
    git_url = metadata.get("git_url")
    if git_url is None and reference.startswith((".", "/", "~")):
        return Path(reference).expanduser().resolve()
    try:
        source = _source(reference, git_url, metadata.get("git_commit_id"))
        async with _fetching.setdefault(f"{git_url}#{reference}", asyncio.Lock()):
            fetched = await TaskClient().download_tasks(task_ids=[source.get_task_id()])
    except Exception as exc:
        raise TaskError(f"harbor_task {reference!r} cannot be fetched: {exc}") from exc
    return fetched.results[0].path


def _source(reference: str, git_url: object, commit: object) -> TaskSource:
    if git_url is not None:
        if commit is None:
            logger.warning("Task %s of %s is unpinned: set git_commit_id", reference, git_url)
        return TaskSource.model_validate(
            {"path": reference, "git_url": git_url, "git_commit_id": commit}
        )
    name, _, ref = reference.partition("@")
    if "/" not in name:
        raise TaskError(
            f"{reference!r} is neither a path (begin it with './') nor a package 'org/name'"
        )
    if not ref:
        logger.warning("Task %s has no @ref; 'latest' may change under you", reference)
    return TaskSource(name=name, ref=ref or "latest")


def _text(value: object, key: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise TaskError(f"metadata[{key!r}] must be a non-empty string, got {value!r}")
    return value


def _refuse_links(path: Path) -> None:
    for folder, folders, files in os.walk(path, followlinks=False):
        for name in (*folders, *files):
            entry = Path(folder, name)
            if entry.is_symlink():
                raise TaskError(
                    f"Task {path.name} holds a symbolic link ({entry.relative_to(path)}); tasks "
                    "must be self-contained: replace it by the file it points to"
                )
