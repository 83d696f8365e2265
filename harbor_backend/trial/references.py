"""The task that one rollout names, which is not a directory of this machine."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harbor.models.task.id import PackageTaskId
from harbor.models.trial.config import TaskConfig as TaskSource

from harbor_backend.outages import hide_credentials, reasons
from harbor_backend.trial.datasets import DatasetReference, dataset_tasks, pick_task
from harbor_backend.trial.fetching import GitClient, TaskId, saying_what_failed
from harbor_backend.trial.tasks import TaskError

logger = logging.getLogger(__name__)

type Source = TaskId | DatasetReference


@dataclass(frozen=True)
class TaskReference:
    """What ``metadata["harbor_task"]`` names beside local paths.

    A path in the repository ``metadata["git_url"]``, at ``git_commit_id``; a package
    ``org/name[@ref]``; or ``NAME@VERSION/TASK``, a task of a dataset of Harbor's
    registry or of ``metadata["registry_path"]`` or ``["registry_url"]``.
    """

    task: str
    source: Source

    @classmethod
    def of(cls, named: str, metadata: Mapping[str, Any]) -> "TaskReference":
        """Read a rollout's reference.

        Raises:
            TaskError: it is none.
        """
        try:
            return cls._of(named, metadata)
        except ValueError as exc:  # Harbor's models say which field, and why
            raise TaskError(f"harbor_task {named!r} is no reference: {reasons(exc)}") from None

    @classmethod
    def _of(cls, named: str, metadata: Mapping[str, Any]) -> "TaskReference":
        git_url, commit = metadata.get("git_url"), metadata.get("git_commit_id")
        if git_url is not None:
            if commit is None:
                where = hide_credentials(str(git_url))
                logger.warning("Task %s of %s is unpinned: set git_commit_id", named, where)
            source = TaskSource.model_validate(
                {"path": named, "git_url": git_url, "git_commit_id": commit}
            )
            return cls(named, source.get_task_id())
        name, _, rest = named.partition("@")
        version, _, task = rest.partition("/")
        if "/" not in name and version and task:
            path, url = metadata.get("registry_path"), metadata.get("registry_url")
            if path is not None and url is not None:
                raise ValueError("registry_path and registry_url exclude each other")
            dataset = DatasetReference(
                f"{name}@{version}",
                registry_path=None if path is None else Path(str(path)).expanduser(),
                registry_url=None if url is None else str(url),
            )
            return cls(task, dataset)
        org, slash, package = name.partition("/")
        if not slash:
            raise ValueError(
                "it is neither a path (begin it with './'), nor a package 'org/name', nor a task "
                "'NAME@VERSION/TASK' of a dataset"
            )
        if not rest:
            logger.warning("Task %s has no @ref; 'latest' may change under you", named)
        return cls(named, PackageTaskId(org=org, name=package, ref=rest or "latest"))


async def fetch_task(reference: TaskReference) -> Path:
    """Have a task in Harbor's cache.

    Raises:
        TaskError: the reference names nothing.
        TaskFetchError: what it is fetched from does not answer.
    """
    task = reference.source
    if isinstance(task, DatasetReference):
        task = pick_task(task, await dataset_tasks(task), reference.task)
    async with saying_what_failed(f"harbor_task {reference.task!r}"):
        (path,) = await GitClient().fetch([task])
    return path
