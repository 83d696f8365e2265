"""Commands and files through the Engine API itself.

The fallback for images and hosts that cannot run the supervisor. It keeps the
same contract, at several times the cost per call.
"""

import io
import os
import struct
import tarfile
import uuid
from pathlib import Path, PurePosixPath

from harbor_backend.environments.channel import Command, RunResult
from harbor_backend.environments.engine import Engine, EngineError
from harbor_backend.environments.safe_tree import TreeWriter, local_entries
from osmosis_ai.rollout.container.supervisor.frames import TIMED_OUT

_HEADER = struct.Struct(">BxxxL")
_STDOUT, _STDERR = 1, 2
_BLOCK = 512

# Runs "$@" marked by a variable, and ends everything that carries the mark when time is up: what
# detaches itself inherits it too. The watcher's own sleep must not outlive the command.
_WITH_DEADLINE = """
OSMOSIS_EXEC={mark} "$@" & command=$!
( trap 'kill $sleeper; exit' TERM; sleep {seconds} & sleeper=$!; wait $sleeper; : > {flag}
  for round in 1 2 3; do for entry in /proc/[0-9]*; do
    grep -qa OSMOSIS_EXEC={mark} $entry/environ && kill -9 ${{entry#/proc/}}
  done; done ) </dev/null >/dev/null 2>&1 & watcher=$!
wait $command; code=$?
kill $watcher 2>/dev/null
if [ -e {flag} ]; then rm -f {flag}; exit 124; fi
exit $code
"""


class EngineExec:
    """Runs commands in one container, and copies files, through the Engine API."""

    def __init__(self, engine: Engine, container: str, cwd: str = "/") -> None:
        self._engine = engine
        self._container = container
        self.cwd = cwd

    async def run(self, command: Command) -> RunResult:
        """Run one command to its end, or to its deadline.

        Raises:
            EngineError: the engine or the container is gone.
        """
        argv = list(command.argv)
        env = dict(command.env or {})
        mark = uuid.uuid4().hex
        if command.timeout_sec is not None:
            script = _WITH_DEADLINE.format(
                seconds=max(command.timeout_sec, 0.01), mark=mark, flag=f"/tmp/.osmosis-{mark}"
            )
            argv = ["sh", "-c", script, "osmosis", *argv]
        config = {
            "AttachStdout": True,
            "AttachStderr": True,
            "Cmd": argv,
            "Env": [f"{key}={value}" for key, value in env.items()],
            "WorkingDir": command.cwd or "",
            "User": "" if command.user is None else str(command.user),
        }
        created = await self._engine.call(
            "POST", f"/containers/{self._container}/exec", json=config
        )
        output = await self._output(created["Id"], command)
        record = await self._engine.call("GET", f"/exec/{created['Id']}/json")
        code = int(record["ExitCode"] or 0)
        timed_out = command.timeout_sec is not None and code == TIMED_OUT
        return RunResult(code, *output, timed_out=timed_out)

    async def mkdir(self, paths: list[str], mode: int = 0o777) -> None:
        """Make directories, with their parents, as root."""
        made = await self.run(
            Command(["sh", "-c", f'mkdir -p "$@" && chmod {mode:o} "$@"', "sh", *paths], user="0")
        )
        if made.code:
            raise OSError(made.stderr.decode(errors="replace").strip())

    async def put(self, source: Path, path: str) -> None:
        """Copy a local file to ``path``, or the content of a local directory below it."""
        target = PurePosixPath(path)
        await self.mkdir_plain(path if source.is_dir() else str(target.parent))
        base, top = (path, "") if source.is_dir() else (str(target.parent), target.name)
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for entry in local_entries(source):
                name = entry.header["name"] or top
                if not name:
                    continue
                member = tarfile.TarInfo(name)
                member.mode = entry.header["mode"]
                if entry.header["kind"] == "dir":
                    member.type = tarfile.DIRTYPE
                elif entry.header["kind"] == "link":
                    member.type, member.linkname = tarfile.SYMTYPE, entry.header["target"]
                elif entry.source is not None:
                    member.size = entry.source.stat().st_size
                    with entry.source.open("rb") as file:
                        tar.addfile(member, file)
                    continue
                tar.addfile(member)
        await self._engine.call(
            "PUT",
            f"/containers/{self._container}/archive",
            params={"path": base},
            content=archive.getvalue(),
        )

    async def mkdir_plain(self, path: str) -> None:
        """Make one directory with its parents, leaving an existing one's mode alone."""
        made = await self.run(Command(["mkdir", "-p", path], user="0"))
        if made.code:
            raise OSError(made.stderr.decode(errors="replace").strip())

    async def get(self, path: str, target: Path, *, max_bytes: int, max_entries: int) -> int:
        """Copy a file or tree to ``target``; returns what was left out.

        Raises:
            FileNotFoundError: the path does not exist.
            ValueError: it is larger than the budget.
        """
        archive = io.BytesIO()
        try:
            async for chunk in self._engine.stream(
                "GET", f"/containers/{self._container}/archive", params={"path": path}
            ):
                archive.write(chunk)
                if archive.tell() > max_bytes + max_entries * 3 * _BLOCK:
                    raise ValueError(f"{path} holds more than {max_bytes} bytes")
        except EngineError as exc:
            if exc.status == 404:
                raise FileNotFoundError(f"{path} does not exist in the sandbox") from exc
            raise
        archive.seek(0)
        return _unpack(archive, target, max_entries)

    async def close(self) -> None:
        """Nothing is held between calls."""

    async def _output(self, exec_id: str, command: Command) -> tuple[bytes, bytes]:
        streams = {_STDOUT: bytearray(), _STDERR: bytearray()}
        pending = bytearray()
        async for chunk in self._engine.stream(
            "POST", f"/exec/{exec_id}/start", json={"Detach": False, "Tty": False}
        ):
            pending += chunk
            while len(pending) >= _HEADER.size:
                kind, length = _HEADER.unpack_from(pending)
                if len(pending) < _HEADER.size + length:
                    break
                payload = bytes(pending[_HEADER.size : _HEADER.size + length])
                del pending[: _HEADER.size + length]
                kept = streams.setdefault(kind, bytearray())
                kept += payload[: command.output_limit - len(kept)]
                if command.on_output is not None:
                    name = "stdout" if kind == _STDOUT else "stderr"
                    await command.on_output(payload.decode(errors="replace"), name)
        return bytes(streams[_STDOUT]), bytes(streams[_STDERR])


def _unpack(archive: io.BytesIO, target: Path, max_entries: int) -> int:
    """Write an archive's members through ``TreeWriter``; returns how many were left out."""
    writer, skipped = TreeWriter(target), 0
    with tarfile.open(fileobj=archive) as tar:
        for count, member in enumerate(tar):
            if count >= max_entries:
                raise ValueError(f"more than {max_entries} entries")
            # The archive's own top is the requested path itself.
            name = os.path.normpath(member.name).partition("/")[2]
            header = {"name": name, "mode": member.mode}
            if member.isdir():
                writer.entry({**header, "kind": "dir"})
            elif member.issym():
                writer.entry({**header, "kind": "link", "target": member.linkname})
            elif member.isreg() and (file := tar.extractfile(member)) is not None:
                writer.entry({**header, "kind": "file"})
                while data := file.read(256 * 1024):
                    writer.data(data)
            else:
                skipped += 1
    writer.close()
    return skipped + writer.refused_links
