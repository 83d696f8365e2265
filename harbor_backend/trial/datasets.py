"""Datasets of a registry or of a git repository, as their tasks."""

import asyncio
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from harbor.constants import DEFAULT_REGISTRY_URL
from harbor.models.package.reference import PackageReference
from harbor.models.task.id import GitTaskId, PackageTaskId

from harbor_backend.errors import HarborBackendError
from harbor_backend.outages import hide_credentials, reasons
from harbor_backend.trial.fetching import GitClient, TaskFetchError, TaskId, saying_what_failed
from harbor_backend.trial.tasks import TaskError

if TYPE_CHECKING:
    from harbor.registry.client.base import BaseRegistryClient

_GIT_SCHEMES = ("https://", "http://", "ssh://", "git://", "git@")
_MAX_REGISTRY_BYTES = 64 * 1024 * 1024
_ANSWER_SEC = 60.0


@dataclass(frozen=True)
class DatasetReference:
    """A dataset that is not a folder of this machine.

    ``name`` is ``NAME[@VERSION]`` of a registry, ``org/name[@ref]`` of Harbor's
    packages, or a git repository whose tasks are the dataset:
    ``https://host/org/repo[@ref]`` or ``…/tree/<ref>/<folder>`` (``tasks`` by default).
    The registry is Harbor's own, or the one that is given: a file, or the URL of one.
    """

    name: str
    registry_path: Path | None = None
    registry_url: str | None = None

    def __str__(self) -> str:
        return hide_credentials(self.name)


@dataclass(frozen=True)
class DatasetTask:
    """A task of a dataset: where it is on this machine, or why it cannot be had."""

    name: str
    path: Path | None = None
    problem: HarborBackendError | None = None


async def fetch_dataset(
    reference: DatasetReference, only: Collection[str] = ()
) -> list[DatasetTask]:
    """Have a dataset's tasks, or ``only`` those of these names, in Harbor's cache.

    One that cannot be had does not refuse the others.

    Raises:
        TaskError: the reference, or a name in ``only``, names nothing.
        TaskFetchError: the registry does not answer.
    """
    tasks = await dataset_tasks(reference)
    for name in only:
        pick_task(reference, tasks, name)
    sources: dict[str, dict[str, TaskId]] = {}
    for name, task in tasks.items():
        if not only or name in only:
            source = task.git_url if isinstance(task, GitTaskId) else type(task).__name__
            sources.setdefault(source, {})[name] = task
    found: dict[str, DatasetTask] = {}
    for each in sources.values():
        found |= await _fetch_all(f"The dataset {reference}", each)
    return [found[name] for name in tasks if name in found]


def pick_task(reference: DatasetReference, tasks: Mapping[str, TaskId], name: str) -> TaskId:
    """Return the task of a dataset that has this name.

    Raises:
        TaskError: there is none.
    """
    if name not in tasks:
        raise TaskError(
            f"{name!r} names no task of the dataset {reference}; it has {', '.join(tasks)}"
        )
    return tasks[name]


async def dataset_tasks(reference: DatasetReference) -> dict[str, TaskId]:
    """The tasks of a dataset by their names, of which no two are equal.

    Raises:
        TaskError: the reference names nothing.
        TaskFetchError: the registry does not answer.
    """
    async with saying_what_failed(f"The dataset {reference}"):
        ids = await _listed(reference)
    if not ids:
        raise TaskError(f"The dataset {reference} has no tasks")
    named: dict[str, TaskId] = {}
    for task in ids:
        name = task.get_name().rpartition("/")[2] or "task"
        unique, count = name, 1
        while unique in named:
            count += 1
            unique = f"{name}-{count}"
        named[unique] = task
    return named


async def _fetch_all(what: str, tasks: Mapping[str, TaskId]) -> dict[str, DatasetTask]:
    """Fetch tasks of one source together, or one by one where that cannot be."""
    try:
        async with saying_what_failed(what):
            paths = await GitClient().fetch(list(tasks.values()))
    except TaskFetchError as exc:
        return {name: DatasetTask(name, problem=exc) for name in tasks}
    except TaskError as exc:
        if len(tasks) == 1:
            return {name: DatasetTask(name, problem=exc) for name in tasks}
        found: dict[str, DatasetTask] = {}
        for name, task in tasks.items():
            found |= await _fetch_all(f"Task {name}", {name: task})
        return found
    return {
        name: DatasetTask(name, path.resolve()) for name, path in zip(tasks, paths, strict=True)
    }


async def _listed(reference: DatasetReference) -> list[TaskId]:
    name = reference.name
    if name.startswith(_GIT_SCHEMES):
        return await _of_repository(name)
    if reference.registry_path is not None:
        return await _of_file(reference.registry_path, name, str(reference.registry_path))
    url = reference.registry_url
    if url is not None and url != DEFAULT_REGISTRY_URL:
        with tempfile.TemporaryDirectory(prefix="osmosis-registry-") as folder:
            path = Path(folder, "registry.json")
            await _download(url, path)
            return await _of_file(path, name, hide_credentials(url))
    if "/" in name:
        return await _of_package(PackageReference.parse(name))
    from harbor.registry.client.factory import RegistryClientFactory

    return await _ids(RegistryClientFactory.create(), name)


async def _of_file(path: Path, name: str, called: str) -> list[TaskId]:
    from harbor.registry.client.json import JsonRegistryClient

    file = path / "registry.json" if path.is_dir() else path
    if not file.is_file():
        raise TaskError(f"The registry {called} is no file")
    if file.stat().st_size > _MAX_REGISTRY_BYTES:
        raise TaskError(f"The registry {called} has more than {_MAX_REGISTRY_BYTES} bytes")
    try:
        client = await asyncio.to_thread(JsonRegistryClient, None, file)
    except (ValueError, TypeError, RecursionError) as exc:
        raise TaskError(f"The registry {called} is not valid: {reasons(exc)}") from exc
    known = client.dataset_specs
    bare, _, version = name.partition("@")
    if bare not in known or (version and version not in known[bare]):
        every = [f"{each}@{of_each}" for each in known for of_each in known[each]]
        raise TaskError(f"The registry {called} has no dataset {name}; it has {', '.join(every)}")
    return await _ids(client, name)


async def _of_repository(source: str) -> list[TaskId]:
    from harbor.registry.client.git_repo import GitRepoRegistryClient, resolve_repo_source

    repo = resolve_repo_source(source)
    if repo.ref is not None and repo.ref.startswith("-"):  # git would take it for an option
        raise ValueError(f"no branch, tag or commit begins with '-': {repo.ref}")
    client = GitRepoRegistryClient(repo)
    client._task_client = GitClient()
    return await _ids(client, "")


async def _of_package(package: PackageReference) -> list[TaskId]:
    from harbor.db.client import RegistryDB
    from harbor.registry.client.package import PackageDatasetClient

    kind = await RegistryDB().get_package_type(org=package.org, name=package.short_name)
    if kind == "task":
        return [PackageTaskId(org=package.org, name=package.short_name, ref=package.ref)]
    client: BaseRegistryClient = PackageDatasetClient()  # type: ignore[no-untyped-call]
    return await _ids(client, str(package))


async def _ids(client: "BaseRegistryClient", name: str) -> list[TaskId]:
    return list((await client.get_dataset_metadata(name)).task_ids)


async def _download(url: str, target: Path) -> None:
    """Fetch a registry; unlike Harbor's way of doing it, it ends, and has a size."""
    size = 0
    async with (
        httpx.AsyncClient(timeout=_ANSWER_SEC, follow_redirects=True) as client,
        client.stream("GET", url) as answer,
    ):
        answer.raise_for_status()
        with target.open("wb") as file:
            async for chunk in answer.aiter_bytes():
                size += len(chunk)
                if size > _MAX_REGISTRY_BYTES:
                    raise TaskError(f"The registry has more than {_MAX_REGISTRY_BYTES} bytes")
                file.write(chunk)
