"""Commands and files through the Engine API itself.

The fallback for images and hosts that cannot run the supervisor. It keeps the
same contract, at several times the cost per call.
"""

import asyncio
import tempfile
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path, PurePosixPath

from harbor_backend.errors import SandboxLostError
from harbor_backend.places.docker.ending import has_ended
from harbor_backend.places.docker.engine import Engine, EngineError
from harbor_backend.places.docker.executor import Command, Executor
from harbor_backend.places.docker.streams import STDERR, STDOUT, demultiplexed
from harbor_backend.places.sandbox import PhaseEnd
from harbor_backend.places.tar import BLOCK, chunks_of, pack, unpack
from osmosis_ai.rollout.container.supervisor.frames import TIMED_OUT

_POLL_SEC = 0.05
_NOT_STARTED = (126, 127)
_NOT_FOUND, _KILLED = 127, 137
_ENDED = "The sandbox ended: its container is gone"
_REFUSALS = ("unable to find ", "OCI runtime exec failed")

_MARK = "OSMOSIS_EXEC"
_SWEEPS = 10
# A shell that stays, so that the mark is there for as long as the command is.
_CARRY_MARK = '"$@"; exit $?'
# Lists what carries the mark, which only its own user may see; then, if the first process starts
# nothing by itself, what began since, lost its parents and carries no mark: it cleared its
# environment.
_FIND = """
mark=$1 passive=$2 since=
for entry in /proc/[0-9]*; do
  grep -qa "$mark" $entry/environ 2>/dev/null || continue
  stat=$(cat $entry/stat 2>/dev/null) || continue
  echo ${entry#/proc/}
  set -- ${stat##*) }
  [ -n "$since" ] && [ "${20}" -ge "$since" ] || since=${20}
done
[ -n "$since" ] && [ -n "$passive" ] || exit 0
for entry in /proc/[0-9]*; do
  stat=$(cat $entry/stat 2>/dev/null) || continue
  set -- ${stat##*) }
  [ "$2" = 1 ] && [ "${20}" -ge "$since" ] && cat $entry/environ >/dev/null 2>&1 || continue
  grep -qa "${mark%%=*}=" $entry/environ || echo ${entry#/proc/}
done
true
"""
# Ends these processes and everything below them. What is found is stopped first, so that nothing
# forks while it is being killed.
_END_TREES = """
seen=" $* "
kill -STOP "$@" 2>/dev/null
while :; do
  found=
  for entry in /proc/[0-9]*; do
    pid=${entry#/proc/}
    case $seen in *" $pid "*) continue;; esac
    stat=$(cat $entry/stat 2>/dev/null) || continue
    set -- ${stat##*) }
    case $seen in *" $2 "*) ;; *) continue;; esac
    kill -STOP $pid 2>/dev/null
    seen="$seen$pid "
    found=1
  done
  [ -n "$found" ] || break
done
kill -KILL $seen 2>/dev/null
true
"""


class EngineExec(Executor):
    """Runs commands in one container, and copies files, through the Engine API."""

    is_supervisor = False

    def __init__(self, engine: Engine, container: str, *, is_passive: bool, cwd: str = "/") -> None:
        self._engine = engine
        self._container = container
        # Whether all processes but the first are those of commands.
        self._is_passive = is_passive
        self.cwd = cwd

    async def run(self, command: Command) -> PhaseEnd:
        """Run one command to its end, or to its deadline; cancelling the call kills it.

        Raises:
            SandboxLostError: the container ended first.
            EngineError: the engine is gone.
            ValueError: the command wants a user or group that the image does not have,
                or input.
        """
        if command.stdin is not None or command.result_limit:
            raise ValueError("a sandbox without a supervisor takes no input and gives no result")
        mark = f"{_MARK}={uuid.uuid4().hex}"
        exec_id = await self._create(command, mark)
        output = _Output(command)
        try:
            async with asyncio.timeout(command.timeout_sec) as scope:
                await output.collect(
                    self._engine.stream(
                        "POST", f"/exec/{exec_id}/start", json={"Detach": False, "Tty": False}
                    )
                )
                code = await self._exit_code(exec_id)
        except TimeoutError:
            if not scope.expired():
                raise
            await self._end(mark, command.user)
            return output.result(TIMED_OUT, timed_out=True)
        except asyncio.CancelledError:
            # From out here, a command cannot be told from what it started.
            if not command.spares_processes:
                await asyncio.shield(self._end(mark, command.user))
            raise
        except EngineError as exc:
            await self._check_alive(exc)
            raise
        done = output.result(code)
        if (code == _KILLED or _was_not_started(done)) and await self._has_ended():
            raise SandboxLostError(_ENDED)
        return _checked(done)

    async def mkdir(self, paths: Sequence[str], mode: int = 0o777) -> None:
        """Make directories, with their parents, as root."""
        script = f'mkdir -p -- "$@" && chmod {mode:o} -- "$@"'
        await self._as_root(["sh", "-c", script, "sh", *paths])

    async def put(self, source: Path, path: str) -> None:
        """Copy a local file to ``path``, or the content of a local directory below it."""
        target = PurePosixPath(path)
        base, top = (path, "") if source.is_dir() else (str(target.parent), target.name)
        with tempfile.TemporaryFile() as archive:
            await asyncio.to_thread(pack, source, top, archive)
            await self._as_root(["mkdir", "-p", "--", base])
            await self._engine.call(
                "PUT",
                f"/containers/{self._container}/archive",
                params={"path": base},
                content=chunks_of(archive),
            )

    async def get(self, path: str, target: Path, *, max_bytes: int, max_entries: int) -> int:
        """Copy a file or tree to ``target``; returns what was left out.

        Raises:
            FileNotFoundError: the path does not exist.
            ValueError: it is larger than the budget.
        """
        source = (await self._as_root(["readlink", "-f", "--", path], check=False)).rstrip("\n")
        with tempfile.TemporaryFile() as archive:
            # Closed at once: the engine locks the container for as long as it sends.
            stream = self._engine.stream(
                "GET", f"/containers/{self._container}/archive", params={"path": source or path}
            )
            try:
                async with aclosing(stream) as chunks:
                    async for chunk in chunks:
                        archive.write(chunk)
                        if archive.tell() > max_bytes + max_entries * 3 * BLOCK:
                            raise ValueError(f"{path} holds more than {max_bytes} bytes")
            except EngineError as exc:
                if exc.status == 404:
                    raise FileNotFoundError(f"{path} does not exist in the sandbox") from exc
                raise
            archive.seek(0)
            return await asyncio.to_thread(unpack, archive, target, max_bytes, max_entries)

    async def keep(self) -> None:
        """It outlives this process by itself."""

    async def close(self) -> None:
        """Nothing is held between calls."""

    async def _create(self, command: Command, mark: str) -> str:
        config = {
            "AttachStdout": True,
            "AttachStderr": True,
            "Cmd": ["sh", "-c", _CARRY_MARK, "sh", *command.argv],
            "Env": [*(f"{key}={value}" for key, value in (command.env or {}).items()), mark],
            "WorkingDir": command.cwd or "",
            "User": "" if command.user is None else str(command.user),
        }
        path = f"/containers/{self._container}/exec"
        try:
            created = await self._engine.call("POST", path, json=config)
        except EngineError as exc:
            await self._check_alive(exc)
            raise
        return str(created["Id"])

    async def _as_root(self, argv: Sequence[str], *, check: bool = True) -> str:
        made = await self.run(Command(argv, user="0"))
        if made.code and check:
            raise OSError(made.stderr.decode(errors="replace").strip() or f"{argv[0]} failed")
        return made.stdout.decode(errors="surrogateescape") if not made.code else ""

    async def _exit_code(self, exec_id: str) -> int:
        """Wait for the exit code: a command may close its output long before it ends."""
        while True:
            record = await self._engine.call("GET", f"/exec/{exec_id}/json")
            if not record["Running"] and record["ExitCode"] is not None:
                return int(record["ExitCode"])
            await asyncio.sleep(_POLL_SEC)

    async def _has_ended(self) -> bool:
        return await has_ended(self._engine, self._container)

    async def _check_alive(self, exc: EngineError) -> None:
        """Say of what the engine refused whether it is because the container ended."""
        if exc.status and await self._has_ended():
            raise SandboxLostError(_ENDED) from exc

    async def _end(self, mark: str, user: str | int | None) -> None:
        """Kill what a command started; that the container ended meanwhile is fine."""
        find = ["sh", "-c", _FIND, "sh", mark, "1" if self._is_passive else ""]
        try:
            for _ in range(_SWEEPS):
                found = await self.run(Command(find, user=user))
                pids = found.stdout.decode(errors="replace").split()
                if not pids:
                    return
                await self._as_root(["sh", "-c", _END_TREES, "sh", *pids])
        except SandboxLostError:
            return


class _Output:
    """What a command printed, within its limits."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._streams = {STDOUT: bytearray(), STDERR: bytearray()}
        self._dropped = 0

    async def collect(self, stream: AsyncGenerator[bytes]) -> None:
        """Take what the engine sends."""
        async with aclosing(stream) as chunks, aclosing(demultiplexed(chunks)) as printed:
            async for kind, payload in printed:
                await self._take(kind, payload)

    def result(self, code: int, *, timed_out: bool = False) -> PhaseEnd:
        """The command's result."""
        return PhaseEnd(
            code,
            bytes(self._streams[STDOUT]),
            bytes(self._streams[STDERR]),
            timed_out=timed_out,
            dropped=self._dropped,
        )

    async def _take(self, kind: int, payload: bytes) -> None:
        kept = self._streams[STDERR if kind == STDERR else STDOUT]
        passed = payload[: max(self._command.output_limit - len(kept), 0)]
        kept += passed
        self._dropped += len(payload) - len(passed)
        if self._command.on_output is not None and passed:
            name = "stderr" if kind == STDERR else "stdout"
            await self._command.on_output(passed.decode(errors="replace"), name)


def _was_not_started(done: PhaseEnd) -> bool:
    """Whether the engine could not start a command for another reason than that it is missing."""
    text = _refusal(done)
    return text.startswith(_REFUSALS[1]) and not _is_missing(text)


def _checked(done: PhaseEnd) -> PhaseEnd:
    """Tell a command that the engine could not start from one that it ran."""
    text = _refusal(done)
    if not text:
        return done
    if text.startswith(_REFUSALS[0]):
        raise ValueError(f"The sandbox refused: {text}")
    return PhaseEnd(_NOT_FOUND if _is_missing(text) else done.code, b"", done.stdout)


def _refusal(done: PhaseEnd) -> str:
    """What the engine says in place of a command that it could not start; empty if it ran."""
    text = done.stdout.decode(errors="replace").strip() if done.code in _NOT_STARTED else ""
    return text if text.startswith(_REFUSALS) else ""


def _is_missing(refusal: str) -> bool:
    return "executable file not found" in refusal or "no such file" in refusal
