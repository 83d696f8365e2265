"""Finding the task of a rollout."""

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harbor_backend.places.place import TaskFiles
from harbor_backend.trial.references import TaskReference, fetch_task
from harbor_backend.trial.tasks import TaskError, TaskMode, check_task, find_tasks

logger = logging.getLogger(__name__)


class TaskFolder:
    """Where a backend's tasks come from.

    Raises:
        TaskError: the template is not fit to be run.
        ValueError: in dataset mode, the folder does not exist.
    """

    def __init__(self, tasks_dir: Path | str, mode: TaskMode | str) -> None:
        self.mode = TaskMode(mode)
        self.folder = Path(tasks_dir).expanduser().resolve()
        if self.is_template:
            check_task(self.folder, needs_instruction=False)
        elif not self.folder.is_dir():
            raise ValueError(f"tasks_dir={str(tasks_dir)!r} is not a directory of tasks")

    @property
    def is_template(self) -> bool:
        """Whether one environment serves every prompt."""
        return self.mode is TaskMode.TEMPLATE

    @property
    def ids(self) -> list[str]:
        """The template's name, or those of the folder's tasks, sorted."""
        return [self.folder.name] if self.is_template else find_tasks(self.folder)

    def files(self, task: str) -> TaskFiles:
        """A task of the folder, or one at an absolute path, as it lies there.

        Raises:
            TaskError: it is not fit to be run.
        """
        return self._files(task, needs_instruction=not self.is_template)

    def all_files(self) -> Iterator[TaskFiles]:
        """All tasks, read one by one as they are asked for; one may lack an instruction.

        A task that is not fit to be run is left out: its rollouts say why.

        Raises:
            TaskError: the template is not.
        """
        for task_id in self.ids:
            try:
                yield self._files(task_id, needs_instruction=False)
            except TaskError as exc:
                if self.is_template:
                    raise
                logger.warning("Rollouts of one task will fail: %s", exc)

    def _files(self, task: str, *, needs_instruction: bool) -> TaskFiles:
        path = self.folder if self.is_template else self.folder / task
        return TaskFiles(path.name, check_task(path, needs_instruction=needs_instruction), path)

    async def resolve(self, metadata: Mapping[str, Any] | None) -> Path:
        """Return the task directory of one rollout.

        ``metadata["harbor_task"]`` wins in both modes: a local path (it begins with
        ``.``, ``/`` or ``~``), or what ``TaskReference`` reads. Dataset mode else needs
        ``harbor_task_id``.

        Raises:
            TaskError: a key is missing, names nothing, or leaves the folder.
            TaskFetchError: what a task is fetched from does not answer.
        """
        given = metadata or {}
        reference = given.get("harbor_task")
        if reference is not None:
            named = _text(reference, "harbor_task")
            if given.get("git_url") is None and named.startswith((".", "/", "~")):
                return _local(named)
            return await fetch_task(TaskReference.of(named, given))
        if self.is_template:
            return self.folder
        task_id = given.get("harbor_task_id")
        if task_id is None:
            raise TaskError(
                "Dataset mode needs metadata['harbor_task_id'] (a directory in tasks_dir) or "
                "metadata['harbor_task'] on every rollout"
            )
        return _inside(self.folder, _text(task_id, "harbor_task_id"))


def _local(named: str) -> Path:
    try:
        return Path(named).expanduser().resolve()
    except (OSError, RuntimeError) as exc:  # nobody's home, a circle of links
        raise TaskError(f"harbor_task {named!r} is no path: {exc}") from exc


def _inside(tasks_dir: Path, task_id: str) -> Path:
    try:
        path = (tasks_dir / task_id).resolve()
        there = path.is_dir()
    except (OSError, RuntimeError) as exc:  # too long, a circle of links
        raise TaskError(f"harbor_task_id {task_id!r} is no name of a directory: {exc}") from exc
    if path == tasks_dir.resolve() or not path.is_relative_to(tasks_dir.resolve()):
        raise TaskError(f"harbor_task_id {task_id!r} leaves tasks_dir {tasks_dir}")
    if not there:
        raise TaskError(f"harbor_task_id {task_id!r} names no directory in {tasks_dir}")
    return path


def _text(value: object, key: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise TaskError(f"metadata[{key!r}] must be a non-empty string, got {value!r}")
    return value
