"""Commands and files through the Engine API itself.

The fallback for images and hosts that cannot run the supervisor. It keeps the
same contract, at several times the cost per call.
"""

import asyncio
import struct
import tempfile
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path, PurePosixPath

from harbor_backend.environments.channel import Command, RunResult, SandboxLostError
from harbor_backend.environments.engine import Engine, EngineError
from harbor_backend.environments.tar import BLOCK, chunks_of, pack, unpack
from osmosis_ai.rollout.container.supervisor.frames import TIMED_OUT

_HEADER = struct.Struct(">BxxxL")
_STDOUT, _STDERR = 1, 2
_POLL_SEC = 0.05
_ENDING_POLLS = 20
_NOT_STARTED = (126, 127)
_NOT_FOUND, _KILLED = 127, 137
_REFUSALS = ("unable to find ", "OCI runtime exec failed")

_MARK = "OSMOSIS_EXEC"
_SWEEPS = 10
# A shell that stays, so that the mark is there for as long as the command is.
_CARRY_MARK = '"$@"; exit $?'
# Lists what carries the mark, which only its own user may see.
_FIND = """
for entry in /proc/[0-9]*; do
  grep -qa "$1" $entry/environ 2>/dev/null && echo ${entry#/proc/}
done
true
"""
# Ends these processes and everything below them. What is found is stopped first, so that nothing
# forks while it is being killed. What cleared its environment and left its parents before the
# deadline gets away: only a supervisor can find that.
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


class EngineExec:
    """Runs commands in one container, and copies files, through the Engine API."""

    def __init__(self, engine: Engine, container: str, cwd: str = "/") -> None:
        self._engine = engine
        self._container = container
        self.cwd = cwd

    async def run(self, command: Command) -> RunResult:
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
            await asyncio.shield(self._end(mark, command.user))
            raise
        if code == _KILLED and await self._has_ended():
            raise SandboxLostError("The sandbox ended: its container is gone")
        return _checked(output.result(code))

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
        created = await self._engine.call(
            "POST", f"/containers/{self._container}/exec", json=config
        )
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
        """Whether the container ends about now: its commands end a little earlier."""
        for _ in range(_ENDING_POLLS):
            try:
                state = (await self._engine.inspect(self._container))["State"]
            except EngineError as exc:
                if exc.status == 404:
                    return True
                raise
            if not state["Running"]:
                return True
            await asyncio.sleep(_POLL_SEC)
        return False

    async def _end(self, mark: str, user: str | int | None) -> None:
        """Kill what a command started; that the container ended meanwhile is fine."""
        try:
            for _ in range(_SWEEPS):
                found = await self.run(Command(["sh", "-c", _FIND, "sh", mark], user=user))
                pids = found.stdout.decode(errors="replace").split()
                if not pids:
                    return
                await self._as_root(["sh", "-c", _END_TREES, "sh", *pids])
        except SandboxLostError:
            return
        except EngineError as exc:
            if exc.status not in {404, 409}:
                raise


class _Output:
    """What a command printed, within its limits."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._streams = {_STDOUT: bytearray(), _STDERR: bytearray()}
        self._dropped = 0

    async def collect(self, stream: AsyncGenerator[bytes]) -> None:
        """Take the engine's frames."""
        pending = bytearray()
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                pending += chunk
                while len(pending) >= _HEADER.size:
                    kind, length = _HEADER.unpack_from(pending)
                    if len(pending) < _HEADER.size + length:
                        break
                    payload = bytes(pending[_HEADER.size : _HEADER.size + length])
                    del pending[: _HEADER.size + length]
                    await self._take(kind, payload)

    def result(self, code: int, *, timed_out: bool = False) -> RunResult:
        """The command's result."""
        return RunResult(
            code,
            bytes(self._streams[_STDOUT]),
            bytes(self._streams[_STDERR]),
            timed_out=timed_out,
            dropped=self._dropped,
        )

    async def _take(self, kind: int, payload: bytes) -> None:
        kept = self._streams[_STDERR if kind == _STDERR else _STDOUT]
        passed = payload[: max(self._command.output_limit - len(kept), 0)]
        kept += passed
        self._dropped += len(payload) - len(passed)
        if self._command.on_output is not None and passed:
            name = "stderr" if kind == _STDERR else "stdout"
            await self._command.on_output(passed.decode(errors="replace"), name)


def _checked(done: RunResult) -> RunResult:
    """Tell a command that the engine could not start from one that it ran."""
    text = done.stdout.decode(errors="replace").strip()
    if done.code not in _NOT_STARTED or not text.startswith(_REFUSALS):
        return done
    if text.startswith(_REFUSALS[0]):
        raise ValueError(f"The sandbox refused: {text}")
    missing = "executable file not found" in text or "no such file" in text
    return RunResult(_NOT_FOUND if missing else done.code, b"", done.stdout)
