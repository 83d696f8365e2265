"""The tasks that a command line names: a folder's, or those of a dataset that is fetched."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from osmosis_ai.cli.errors import FAILED, CliError

_HERE = (".", "/", "~")


@dataclass(frozen=True)
class FoundTasks:
    """Tasks in the order in which they are run.

    ``folder`` holds them; ``fetched`` says where each is that has been fetched,
    ``problems`` why one could not be.
    """

    folder: Path
    names: tuple[str, ...]
    fetched: Mapping[str, Path] = field(default_factory=dict)
    problems: Mapping[str, Exception] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """Where a task is."""
        return self.fetched.get(name, self.folder / name)


def find(
    tasks: str, only: Sequence[str], registry_path: Path | None, registry_url: str | None
) -> FoundTasks:
    """Find the tasks of a folder, or fetch those of a dataset; ``only`` those of these names.

    A dataset is ``NAME@VERSION`` of Harbor's registry or of the one that is given, a
    package ``org/name@ref``, or the URL of a git repository.

    Raises:
        CliError: there are none.
    """
    if registry_path is not None and registry_url is not None:
        raise CliError("--registry-path and --registry-url exclude each other: give one of them")
    if registry_path is None and registry_url is None and not _is_reference(tasks):
        folder, found = _in_folder(Path(tasks))
        return FoundTasks(folder, _only(folder, found, only))
    return _fetch(tasks, only, registry_path, registry_url)


def _is_reference(tasks: str) -> bool:
    named = "@" in tasks or "://" in tasks
    return named and not tasks.startswith(_HERE) and not Path(tasks).exists()


def _fetch(
    tasks: str, only: Sequence[str], registry_path: Path | None, registry_url: str | None
) -> FoundTasks:
    from harbor_backend import HarborBackendError, TaskError
    from harbor_backend.admin import DatasetReference, fetch_dataset

    registry = None if registry_path is None else registry_path.expanduser()
    reference = DatasetReference(tasks, registry, registry_url)
    try:
        found = asyncio.run(fetch_dataset(reference, only))
    except TaskError as exc:
        raise CliError(str(exc)) from exc
    except HarborBackendError as exc:
        raise CliError(str(exc), FAILED) from exc
    paths = {task.name: task.path for task in found if task.path is not None}
    parents = [path.parent for path in paths.values()]
    return FoundTasks(
        folder=Path(os.path.commonpath(parents)) if parents else Path.cwd(),
        names=tuple(task.name for task in found),
        fetched=paths,
        problems={task.name: task.problem for task in found if task.problem is not None},
    )


def _in_folder(path: Path) -> tuple[Path, list[str]]:
    """The folder of tasks, and their names; one task's own directory is a folder of one."""
    from harbor_backend.admin import find_tasks

    folder = path.expanduser().resolve()
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise CliError(
            f"{path} {what}: give a folder of Harbor tasks, one task's directory, or NAME@VERSION, "
            "a dataset of a registry"
        )
    if (folder / "task.toml").is_file():
        return folder.parent, [folder.name]
    found = find_tasks(folder)
    if not found:
        raise CliError(
            f"{path} holds no task: neither it nor a directory in it has a task.toml. Give a "
            "folder of Harbor tasks, or one task's directory"
        )
    return folder, found


def _only(folder: Path, found: Sequence[str], only: Sequence[str]) -> tuple[str, ...]:
    unknown = [name for name in only if name not in found]
    if unknown:
        raise CliError(f"--task {unknown[0]} names no task in {folder}; it has {', '.join(found)}")
    return tuple(name for name in found if not only or name in only)
