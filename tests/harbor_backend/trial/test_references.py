"""Tasks that are no directories of a backend: fetched once, and what failed is said."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import harbor.tasks.client
import pytest
from aiohttp import web
from harbor.models.task.id import GitTaskId, PackageTaskId

from harbor_backend.errors import HarborBackendError
from harbor_backend.trial.datasets import DatasetReference, fetch_dataset
from harbor_backend.trial.fetching import TaskFetchError
from harbor_backend.trial.references import TaskReference
from harbor_backend.trial.task_folder import TaskFolder
from harbor_backend.trial.tasks import TaskError
from tests.tasks.dataset import DATASET

NOBODY = "https://127.0.0.1:9/org/name"
SHA = "0123456789" * 4


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def write_task(path: Path, instruction: str = "Do it.") -> None:
    (path / "environment").mkdir(parents=True, exist_ok=True)
    (path / "environment" / "Dockerfile").write_text("FROM scratch\n")
    (path / "task.toml").write_text("")
    (path / "instruction.md").write_text(instruction)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Harbor's cache, of this test."""
    path = tmp_path / "cache"
    monkeypatch.setattr(harbor.tasks.client, "TASK_CACHE_DIR", path)
    return path


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two tasks, which git finds at ``https://git.invalid/org/name``."""
    path = tmp_path / "repo"
    for name in ("one", "two"):
        write_task(path / "tasks" / name)
    git(path, "init", "-q", "-b", "main")
    git(path, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(path, "config", "uploadpack.allowFilter", "true")
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", "tasks")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{path}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://git.invalid/org/name")
    return path


@pytest.fixture
def tasks(tmp_path: Path) -> TaskFolder:
    """A folder of tasks with one in it."""
    write_task(tmp_path / "tasks" / "own")
    return TaskFolder(tmp_path / "tasks", "dataset")


def registry(folder: Path, *tasks: dict[str, Any], text: str | None = None) -> Path:
    """The file of a registry with one dataset of two versions."""
    versions = [
        {"name": "sums", "version": version, "description": "", "tasks": list(tasks)}
        for version in ("1.0", "2.0")
    ]
    path = folder / "registry.json"
    path.write_text(json.dumps(versions) if text is None else text)
    return path


def of_git(name: str, commit: str | None = None) -> dict[str, Any]:
    url = "https://git.invalid/org/name"
    return {"name": name, "git_url": url, "git_commit_id": commit, "path": f"tasks/{name}"}


READ = {
    "git": (
        "tasks/one",
        {"git_url": "https://x.example/y", "git_commit_id": SHA},
        GitTaskId(git_url="https://x.example/y", git_commit_id=SHA, path=Path("tasks/one")),
    ),
    "a package": ("org/name@3", {}, PackageTaskId(org="org", name="name", ref="3")),
    "a package without a reference": (
        "org/name",
        {},
        PackageTaskId(org="org", name="name", ref="latest"),
    ),
    "a dataset's": ("sums@1.0/one", {}, DatasetReference("sums@1.0")),
    "a file's": (
        "sums@1.0/one",
        {"registry_path": "/r.json"},
        DatasetReference("sums@1.0", registry_path=Path("/r.json")),
    ),
    "a registry's": (
        "sums@1.0/one",
        {"registry_url": "https://r.example"},
        DatasetReference("sums@1.0", registry_url="https://r.example"),
    ),
}


@pytest.mark.parametrize("case", READ)
def test_what_is_named(case: str) -> None:
    named, metadata, source = READ[case]
    assert TaskReference.of(named, metadata).source == source


@pytest.mark.parametrize(
    ("named", "metadata", "said"),
    [
        ("nothing", {}, "neither a path"),
        ("sums@1.0", {}, "neither a path"),
        ("sums@1.0/x", {"registry_path": "a", "registry_url": "b"}, "exclude each other"),
        ("../x", {"git_url": "https://x.example/y"}, "must stay within the repository"),
        ("x", {"git_url": 3}, "valid string"),
    ],
)
async def test_what_names_nothing(
    tasks: TaskFolder, named: str, metadata: dict[str, Any], said: str
) -> None:
    with pytest.raises(TaskError, match=f"harbor_task '{named}' is no reference: .*{said}"):
        await tasks.resolve({"harbor_task": named, **metadata})


async def test_a_task_of_a_repository_is_fetched_once(
    tasks: TaskFolder, repo: Path, cache: Path
) -> None:
    """A branch means its commit of this moment; what was fetched is then not changed."""
    asked = {"harbor_task": "tasks/one", "git_url": f"file://{repo}", "git_commit_id": "main"}
    first, second = await asyncio.gather(tasks.resolve(asked), tasks.resolve(asked))
    assert first == second
    assert first.is_relative_to(cache)
    assert (first / "instruction.md").read_text() == "Do it."
    write_task(repo / "tasks" / "one", "Do more.")
    git(repo, "commit", "-q", "-a", "-m", "more")
    third = await tasks.resolve(asked)
    assert (third / "instruction.md").read_text() == "Do more."
    assert (first / "instruction.md").read_text() == "Do it."
    at_first = {**asked, "git_commit_id": git(repo, "rev-parse", "HEAD~")}
    shutil.rmtree(repo)
    assert await tasks.resolve(at_first) == first


FAILURES: dict[str, tuple[dict[str, Any], type[HarborBackendError], str]] = {
    "nobody answers": (
        {"harbor_task": "x", "git_url": NOBODY},
        TaskFetchError,
        "git ls-remote failed: fatal: unable to access .*Failed to connect",
    ),
    "no repository": (
        {"harbor_task": "x", "git_url": "file:///none"},
        TaskError,
        "does not appear to be a git repository",
    ),
    "no such path": (
        {"harbor_task": "tasks/three", "git_url": "https://git.invalid/org/name"},
        TaskError,
        "tasks/three",
    ),
    "no such branch": (
        {
            "harbor_task": "tasks/one",
            "git_url": "https://git.invalid/org/name",
            "git_commit_id": "nope",
        },
        TaskError,
        "git fetch failed: fatal: couldn't find remote ref nope",
    ),
    "an option for a commit": (
        {"harbor_task": "x", "git_url": NOBODY, "git_commit_id": "--upload-pack=touch"},
        TaskError,
        "begins with '-'",
    ),
    "no registry": (
        {"harbor_task": "sums@1.0/one", "registry_path": "/none.json"},
        TaskError,
        "The registry /none.json is no file",
    ),
    "no dataset": (
        {"harbor_task": "products@1.0/one", "registry_path": "REGISTRY"},
        TaskError,
        "has no dataset products@1.0; it has sums@1.0, sums@2.0",
    ),
    "no version": (
        {"harbor_task": "sums@3.0/one", "registry_path": "REGISTRY"},
        TaskError,
        "has no dataset sums@3.0; it has sums@1.0, sums@2.0",
    ),
    "no task": (
        {"harbor_task": "sums@1.0/three", "registry_path": "REGISTRY"},
        TaskError,
        "'three' names no task of the dataset sums@1.0; it has one",
    ),
    "no registry answers": (
        {"harbor_task": "sums@1.0/one", "registry_url": "http://127.0.0.1:9/r.json"},
        TaskFetchError,
        "The dataset sums@1.0 cannot be fetched: All connection attempts failed",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_what_failed_is_said(
    case: str, tasks: TaskFolder, repo: Path, tmp_path: Path
) -> None:
    asked, kind, said = FAILURES[case]
    file = str(registry(tmp_path, of_git("one")))
    metadata = {key: file if value == "REGISTRY" else value for key, value in asked.items()}
    with pytest.raises(kind, match=said) as caught:
        await tasks.resolve(metadata)
    assert type(caught.value) is kind
    assert caught.value.__cause__ is None


async def test_a_package_registry_that_does_not_answer(
    tasks: TaskFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harbor.auth.client.SUPABASE_URL", "http://127.0.0.1:9")
    with pytest.raises(TaskFetchError, match="harbor_task 'org/name@1' cannot be fetched: All"):
        await tasks.resolve({"harbor_task": "org/name@1"})


@pytest.mark.parametrize(
    "text", ["", "{", "[{}]", "3", "[" * 100_000, '[{"name": "x", "version": 1}]', "\ud800"]
)
async def test_a_registry_that_is_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "registry.json"
    path.write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(TaskError, match=f"The registry {path} is not valid"):
        await fetch_dataset(DatasetReference("sums@1.0", path))


async def test_a_registry_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harbor_backend.trial.datasets._MAX_REGISTRY_BYTES", 10)
    with pytest.raises(TaskError, match="has more than 10 bytes"):
        await fetch_dataset(DatasetReference("sums@1.0", registry(tmp_path, of_git("one"))))


async def test_the_tasks_of_a_registrys_dataset(repo: Path, tmp_path: Path) -> None:
    """One that is not there refuses no other."""
    local = {"name": "log", "path": str(DATASET / "log-report")}
    registry(tmp_path, of_git("one"), of_git("three"), of_git("two"), local)
    one, three, two, log = await fetch_dataset(DatasetReference("sums", tmp_path))
    assert [task.name for task in (one, three, two, log)] == ["one", "three", "two", "log-report"]
    assert (one.problem, two.problem, log.path) == (None, None, DATASET / "log-report")
    assert one.path is not None
    assert (one.path / "task.toml").is_file()
    assert three.path is None
    assert isinstance(three.problem, TaskError)
    assert "Task three cannot be fetched" in str(three.problem)


async def test_an_outage_of_one_repository_refuses_no_task_of_another(
    repo: Path, tmp_path: Path
) -> None:
    away = {**of_git("two"), "git_url": NOBODY}
    reference = DatasetReference("sums@1.0", registry(tmp_path, away, of_git("one")))
    two, one = await fetch_dataset(reference)
    assert isinstance(two.problem, TaskFetchError)
    assert one.problem is None


async def test_only_what_is_asked_for_is_fetched(repo: Path, tmp_path: Path) -> None:
    away = {**of_git("two"), "git_url": NOBODY}
    reference = DatasetReference("sums@1.0", registry(tmp_path, away, of_git("one")))
    (one,) = await fetch_dataset(reference, ["one"])
    assert one.problem is None
    with pytest.raises(TaskError, match=r"'four' names no task of .* sums@1\.0; it has two, one"):
        await fetch_dataset(reference, ["one", "four"])


async def test_tasks_of_the_same_name_are_told_apart(repo: Path, tmp_path: Path) -> None:
    commit = git(repo, "rev-parse", "HEAD")
    reference = DatasetReference(
        "sums@1.0", registry(tmp_path, of_git("one"), of_git("one", commit))
    )
    assert [task.name for task in await fetch_dataset(reference)] == ["one", "one-2"]


@pytest.mark.parametrize("suffix", ["", "@main", "/tree/main/tasks"])
async def test_the_tasks_of_a_repository(repo: Path, suffix: str) -> None:
    found = await fetch_dataset(DatasetReference(f"https://git.invalid/org/name{suffix}"))
    assert [(task.name, task.problem) for task in found] == [("one", None), ("two", None)]


@pytest.fixture
async def served(anyio_backend: str, repo: Path, tmp_path: Path) -> AsyncIterator[str]:
    """The address of a server: a registry at ``/``, and errors by number."""
    file = registry(tmp_path, of_git("one"))

    async def status(request: web.Request) -> web.Response:
        return web.Response(status=int(request.match_info["status"]))

    async def whole(request: web.Request) -> web.FileResponse:
        return web.FileResponse(file)

    app = web.Application()
    app.router.add_get("/{status:[0-9]+}", status)
    app.router.add_get("/", whole)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    await runner.cleanup()


async def test_a_registry_of_a_server(tasks: TaskFolder, served: str) -> None:
    asked = {"harbor_task": "sums@2.0/one", "registry_url": served}
    assert (await tasks.resolve(asked)).name == "one"
    with pytest.raises(TaskError, match=f"The registry {served} has no dataset none@1"):
        await fetch_dataset(DatasetReference("none@1", registry_url=served))


@pytest.mark.parametrize(
    ("status", "kind"), [(404, TaskError), (429, TaskFetchError), (503, TaskFetchError)]
)
async def test_a_server_that_has_none(
    served: str, status: int, kind: type[HarborBackendError]
) -> None:
    with pytest.raises(kind, match=str(status)) as caught:
        await fetch_dataset(DatasetReference("sums@1.0", registry_url=f"{served}{status}"))
    assert type(caught.value) is kind
