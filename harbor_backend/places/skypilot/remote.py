"""A sandbox over SkyPilot's SDK: commands and files, with every failure named."""

import asyncio
import inspect
import shlex
import time
import uuid
from pathlib import Path
from typing import Any

from harbor.environments.base import ExecResult

from harbor_backend.errors import SandboxLostError
from harbor_backend.places.limits import MAX_DOWNLOAD_BYTES
from harbor_backend.places.runtime_archive import unpack_command
from harbor_backend.places.skypilot.lifetime import MAX_EXEC_SEC
from harbor_backend.places.skypilot.sdk import call

SETUP_SEC = 120
TRANSFER_SEC = 600
# How much longer than its budget a command may keep us waiting before its sandbox counts as lost.
_LOST_SEC = 60
_SCRATCH = "/tmp"


class RemoteSandbox:
    """A running sandbox, by the handle that the SDK gave and its name."""

    def __init__(self, name: str, handle: Any) -> None:
        self.name = name
        self.handle = handle

    async def run(
        self,
        argv: list[str],
        *,
        workdir: str | None = "/",
        budget: int,
        env: dict[str, str] | None = None,
    ) -> ExecResult:
        """Run a program for at most ``budget`` seconds.

        Raises:
            RuntimeError: it ran longer and was killed; the platform tells this by
                nothing but an exit code.
            SandboxLostError: the sandbox, or the connection to it, was lost.
        """
        began = time.monotonic()
        try:
            async with asyncio.timeout(budget + _LOST_SEC):
                started = await call(
                    self.handle.exec,
                    *argv,
                    workdir=workdir,
                    timeout_seconds=budget,
                    env=env or None,
                )
                code = await _awaited(started.wait())
                stdout, stderr = await _text(started.stdout), await _text(started.stderr)
        except Exception as exc:  # the SDK's exceptions are not documented
            raise self._lost(exc) from exc
        if code is None:
            raise SandboxLostError(f"Sandbox {self.name} told no exit code of a command")
        if code != 0 and time.monotonic() - began >= budget:
            raise RuntimeError(f"Command timed out after {budget} seconds")
        return ExecResult(stdout=stdout, stderr=stderr, return_code=code)

    async def sh(self, command: str, budget: int = SETUP_SEC) -> ExecResult:
        """Run a shell command of ours: as the image's user, without the task's environment."""
        return await self.run(["sh", "-c", command], budget=budget)

    async def write(self, data: bytes, path: str) -> None:
        """Write a file; its directory exists."""
        await self._file_call(self.handle.write_bytes, data, path)

    async def read(self, path: str) -> bytes:
        """Read a file whose size was checked.

        Raises:
            FileNotFoundError: it is no regular file.
            ValueError: it is larger than the download budget.
        """
        quoted = shlex.quote(path)
        found = await self.sh(f"test -f {quoted} && wc -c <{quoted}")
        if found.return_code != 0:
            raise FileNotFoundError(f"{path} is no file in the sandbox")
        _check_bytes(path, found.stdout)
        return bytes(await self._file_call(self.handle.read_bytes, path))

    async def write_archive(self, data: bytes, target: str) -> None:
        """Unpack a gzipped tar archive in a directory, which is made."""
        archive = f"{_SCRATCH}/osmosis-{uuid.uuid4().hex}.tar.gz"
        await self.write(data, archive)
        done = await self.sh(unpack_command(archive, target), TRANSFER_SEC)
        if done.return_code != 0:
            raise RuntimeError(f"{target} was not unpacked in the sandbox: {_tail(done)}")

    async def read_archive(self, source: str) -> bytes:
        """Return a directory as a gzipped tar archive, below a single name.

        Raises:
            ValueError: it is larger than the download budget.
        """
        archive = f"{_SCRATCH}/osmosis-{uuid.uuid4().hex}.tar.gz"
        folder, name = shlex.quote(source), shlex.quote(Path(source).name)
        packed = await self.sh(
            f"tar -czf {archive} -C {folder}/.. {name} && wc -c <{archive}", TRANSFER_SEC
        )
        try:
            if packed.return_code != 0:
                raise RuntimeError(f"{source} was not packed in the sandbox: {_tail(packed)}")
            _check_bytes(source, packed.stdout)
            return bytes(await self._file_call(self.handle.read_bytes, archive))
        finally:
            await self.sh(f"rm -f {archive}")

    async def _file_call(self, function: Any, *args: Any) -> Any:
        try:
            async with asyncio.timeout(MAX_EXEC_SEC + _LOST_SEC):
                return await call(function, *args)
        except Exception as exc:  # the SDK's exceptions are not documented
            raise self._lost(exc) from exc

    def _lost(self, exc: Exception) -> SandboxLostError:
        return SandboxLostError(f"Sandbox {self.name} was lost: {type(exc).__name__}: {exc}")


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def _text(stream: Any) -> str:
    data = await _awaited(stream.read())
    if isinstance(data, bytes | bytearray):
        return bytes(data).decode(errors="replace")
    return str(data or "")


def _check_bytes(what: str, counted: str | None) -> None:
    size = int((counted or "").strip() or 0)
    if size > MAX_DOWNLOAD_BYTES:
        raise ValueError(f"{what} holds {size} bytes, and at most {MAX_DOWNLOAD_BYTES} are fetched")


def _tail(done: ExecResult) -> str:
    return (done.stderr or done.stdout or "").strip()[-500:] or "it said nothing"
