"""Fetching what a reference names into Harbor's own cache, and saying what failed."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from weakref import WeakValueDictionary

from harbor.models.task.id import GitTaskId, LocalTaskId, PackageTaskId
from harbor.tasks.client import TaskClient
from harbor.utils.git import select_ls_remote_sha

from harbor_backend.errors import HarborBackendError
from harbor_backend.outages import is_outage, reasons
from harbor_backend.trial.tasks import TaskError

type TaskId = GitTaskId | LocalTaskId | PackageTaskId

_FETCH_SEC = 1800.0
_SHA_LENGTHS = (40, 64)
# Nobody is there to be asked, and what git says is read.
_GIT_ENV = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


class TaskFetchError(HarborBackendError, RuntimeError):
    """Where a task is fetched from does not answer: another try may succeed."""

    phase = "setup"


@contextlib.asynccontextmanager
async def saying_what_failed(what: str) -> AsyncIterator[None]:
    """Bound what is fetched in the block in time, and tell an outage from a mistake.

    ``what`` is named by the errors, which hold no credentials and no cause: commands
    and URLs, with all that is in them, would be in its text.

    Raises:
        TaskFetchError: something did not answer, or not in time.
        TaskError: the reference names nothing that can be had.
    """
    try:
        async with asyncio.timeout(_FETCH_SEC) as limit:
            yield
    except HarborBackendError:
        raise
    except Exception as exc:  # of git, of registries' clients, of Harbor's models
        if limit.expired():
            raise TaskFetchError(f"{what} was not fetched in {_FETCH_SEC:g} s") from None
        text = f"{what} cannot be fetched: {reasons(exc)}"
        raise (TaskFetchError if is_outage(exc) else TaskError)(text) from None


class GitClient(TaskClient):
    """Harbor's client, whose git asks nobody, and ends when nobody waits for it."""

    async def _run_git(
        self,
        *args: str | Path,
        cwd: Path | None = None,
        input: bytes | None = None,
    ) -> None:
        await _run(args, cwd, input)

    async def _run_git_stdout(self, *args: str | Path, cwd: Path | None = None) -> str:
        return (await _run(args, cwd, None)).decode(errors="replace").strip()

    async def fetch(self, tasks: Sequence[TaskId]) -> list[Path]:
        """Have tasks in Harbor's cache; a version that is there already is not fetched again.

        A branch, a tag or no commit at all mean the commit of this moment: what is in
        the cache under it never changes while somebody reads it.
        """
        ids = [await self._pinned(task) for task in tasks]
        async with _alone(ids):
            return [result.path for result in (await self.download_tasks(ids)).results]

    async def _pinned(self, task: TaskId) -> TaskId:
        if not isinstance(task, GitTaskId):
            return task
        ref = task.git_commit_id or "HEAD"
        if ref.startswith("-") or task.git_url.startswith("-"):  # git would take it for an option
            raise ValueError(f"neither a repository nor a commit begins with '-': {task}")
        if len(ref) in _SHA_LENGTHS and all(char in "0123456789abcdef" for char in ref.lower()):
            return task
        found = await self._run_git_stdout("git", "ls-remote", "--", task.git_url, ref)
        if not found:
            return task  # git says it better when it is asked for the commit
        return task.model_copy(update={"git_commit_id": select_ls_remote_sha(found, ref)})


@contextlib.asynccontextmanager
async def _alone(tasks: Sequence[TaskId]) -> AsyncIterator[None]:
    """Let nobody else of this process fetch any of these tasks: Harbor would replace it."""
    loop = id(asyncio.get_running_loop())
    async with contextlib.AsyncExitStack() as stack:
        for task in sorted(set(tasks), key=str):  # in one order, so that nobody waits in a circle
            lock = _locks.setdefault((loop, str(task)), asyncio.Lock())
            await stack.enter_async_context(lock)
        yield


_locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()


async def _run(arguments: Sequence[str | Path], cwd: Path | None, given: bytes | None) -> bytes:
    command = [str(argument) for argument in arguments]
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={**os.environ, **_GIT_ENV},
        stdin=asyncio.subprocess.DEVNULL if given is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, errors = await process.communicate(given)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output, errors)
    return output
