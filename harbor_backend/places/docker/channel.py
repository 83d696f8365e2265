"""The host's side of a supervisor: commands and files over one unix socket."""

import asyncio
import contextlib
import itertools
import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from harbor_backend.errors import SandboxLostError
from harbor_backend.places.docker.executor import Command, Executor
from harbor_backend.places.limits import MAX_DOWNLOAD_BYTES, MAX_DOWNLOAD_ENTRIES
from harbor_backend.places.safe_tree import LocalEntry, TreeWriter, local_entries
from harbor_backend.places.sandbox import PhaseEnd
from osmosis_ai.rollout.container.supervisor import frames

_QUEUED_FRAMES = 64
# A supervisor that says nothing for so long, where it owes something, does not live any more.
_SILENCE_SEC = 60.0


class Take(Protocol):
    """Waits for a channel's next frame, which is owed from a moment of ``time.monotonic()`` on."""

    def __call__(self, due: float = 0.0) -> Awaitable[tuple[int, bytes]]:
        """Return the type and the content of the frame."""
        ...


class Channel(Executor):
    """One connection to one supervisor; a ``Listener`` has it."""

    is_supervisor = True

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._inboxes: dict[int, asyncio.Queue[tuple[int, bytes]]] = {}
        self._lost: SandboxLostError | None = None
        self._heard = time.monotonic()
        self.cwd = "/"
        self._pump: asyncio.Task[None] | None = None

    async def run(self, command: Command) -> PhaseEnd:
        """Run one command to its end; cancelling the call kills its process tree.

        Raises:
            SandboxLostError: the sandbox ended first.
            ValueError: the supervisor refused the request, for example a user
                that the image does not have.
        """
        request = {
            "op": "exec",
            "argv": list(command.argv),
            "user": command.user,
            "cwd": command.cwd,
            "env": dict(command.env or {}),
            "timeout": command.timeout_sec,
            "spare": command.spares_processes,
            "stdin": command.stdin is not None,
            "limit": command.output_limit,
            "result_limit": command.result_limit,
            "runner": None if command.runner is None else list(command.runner),
        }
        streams = {kind: bytearray() for kind in (frames.STDOUT, frames.STDERR, frames.RESULT)}
        limits = {
            frames.STDOUT: command.output_limit,
            frames.STDERR: command.output_limit,
            frames.RESULT: command.result_limit,
        }
        names = {frames.STDOUT: "stdout", frames.STDERR: "stderr"}
        # Without a deadline, a command may be silent for ever.
        due = math.inf if command.timeout_sec is None else time.monotonic() + command.timeout_sec
        async with self._open(request) as (number, inbox), self._feeding(number, command.stdin):
            try:
                while True:
                    kind, payload = await inbox(due)
                    if kind == frames.DONE:
                        break
                    if len(streams[kind]) + len(payload) > limits[kind]:
                        raise self._broken("sent more output than it was allowed")
                    streams[kind] += payload
                    if command.on_output is not None and kind in names:
                        await command.on_output(payload.decode(errors="replace"), names[kind])
            except asyncio.CancelledError:
                self._writer.write(frames.pack(number, frames.CANCEL))
                raise
        answer = _answer(payload)
        return PhaseEnd(
            code=int(answer["code"]),
            stdout=bytes(streams[frames.STDOUT]),
            stderr=bytes(streams[frames.STDERR]),
            result=bytes(streams[frames.RESULT]),
            timed_out=bool(answer["timed_out"]),
            dropped=int(answer["dropped"]),
            result_dropped=int(answer["result_dropped"]),
        )

    async def mkdir(self, paths: Sequence[str], mode: int = 0o777) -> None:
        """Make directories, with their parents, as root."""
        async with self._open({"op": "mkdir", "paths": list(paths), "mode": mode}) as (_, inbox):
            _answer((await inbox())[1])

    async def put(self, source: Path, path: str) -> None:
        """Copy a local file to ``path``, or the content of a local directory below it."""
        await self.put_entries(local_entries(source), path)

    async def put_entries(self, entries: Any, path: str) -> None:
        """Copy entries of ``local_entries`` at or below ``path``.

        Raises:
            OSError: the sandbox could not write one.
        """
        async with self._open({"op": "put", "path": path}) as (number, inbox):
            entry: LocalEntry
            for entry in entries:
                await self._send(number, frames.ENTRY, json.dumps(entry.header).encode())
                for chunk in entry.chunks():
                    await self._send(number, frames.DATA, chunk)
            await self._send(number, frames.INPUT_END)
            _answer((await inbox())[1])

    async def get(
        self,
        path: str,
        target: Path,
        *,
        max_bytes: int = MAX_DOWNLOAD_BYTES,
        max_entries: int = MAX_DOWNLOAD_ENTRIES,
    ) -> int:
        """Copy a file or tree of the sandbox to ``target``; returns what was left out.

        Links that could lead out of the tree and special files are left out.

        Raises:
            FileNotFoundError, OSError: the path cannot be read or written.
            ValueError: it is larger than the budget.
        """
        request = {
            "op": "get",
            "path": path,
            "max_bytes": max_bytes,
            "max_entries": max_entries,
        }
        received = 0
        with TreeWriter(target) as writer:
            async with self._open(request) as (_, inbox):
                while True:
                    kind, payload = await inbox()
                    if kind == frames.DONE:
                        break
                    received += len(payload)
                    if received > max_bytes + max_entries * 1024:
                        raise self._broken("sent more than it was asked for")
                    for one, part in frames.each(kind, payload):
                        if one == frames.ENTRY:
                            writer.entry(json.loads(part))
                        else:
                            writer.data(part)
            answer = _answer(payload)
        return int(answer["skipped"]) + writer.refused_links

    async def keep(self) -> None:
        """Let the sandbox outlive this connection."""
        async with self._open({"op": "keep"}) as (_, inbox):
            _answer((await inbox())[1])

    async def close(self) -> None:
        """End the connection, and with it a sandbox that was not kept."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)

    async def ready(self) -> None:
        """Wait for the supervisor's greeting."""
        async with self._inbox(0) as inbox:
            # Not before: a greeting that nobody waits for would be dropped.
            self._pump = asyncio.create_task(self._receive(), name="sandbox-channel")
            kind, payload = await inbox()
            if kind != frames.READY:
                raise self._broken("did not greet")
            self.cwd = str(json.loads(payload)["cwd"])

    @asynccontextmanager
    async def _open(self, request: dict[str, Any]) -> AsyncIterator[tuple[int, Take]]:
        number = next(self._numbers)
        async with self._inbox(number) as inbox:
            await self._send(number, frames.OPEN, json.dumps(request).encode())
            yield number, inbox

    @asynccontextmanager
    async def _inbox(self, number: int) -> AsyncIterator[Take]:
        if self._lost is not None:
            raise self._lost
        queue: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue(_QUEUED_FRAMES)
        self._inboxes[number] = queue

        async def take(due: float = 0.0) -> tuple[int, bytes]:
            if self._lost is not None and queue.empty():
                raise self._lost
            if queue.empty():
                kind, payload = await self._patient(queue.get(), max(due, time.monotonic()))
            else:
                kind, payload = queue.get_nowait()
            if kind == 0:
                raise self._lost or SandboxLostError("The sandbox ended")
            return kind, payload

        try:
            yield take
        finally:
            del self._inboxes[number]
            while not queue.empty():  # a full inbox would hold up every other channel
                queue.get_nowait()

    async def _receive(self) -> None:
        reason = "The sandbox ended: its supervisor closed the connection"
        try:
            while True:
                header = await self._reader.readexactly(frames.HEADER.size)
                number, kind, length = frames.HEADER.unpack(header)
                if length > frames.MAX_FRAME:
                    reason = f"The sandbox broke the protocol: a frame of {length} bytes"
                    break
                payload = await self._reader.readexactly(length)
                if (queue := self._inboxes.get(number)) is not None:
                    self._heard = math.inf  # while it waits for us
                    await queue.put((kind, payload))
                self._heard = time.monotonic()
        except (asyncio.IncompleteReadError, OSError):
            pass  # the reason above says it
        self._lost = self._lost or SandboxLostError(reason)
        for queue in list(self._inboxes.values()):
            await queue.put((0, b""))

    @asynccontextmanager
    async def _feeding(self, number: int, data: bytes | None) -> AsyncIterator[None]:
        """Send a command's input while its output is read: either may wait for the other."""
        if data is None:
            yield
            return
        feeder = asyncio.create_task(self._feed(number, data), name="sandbox-input")
        try:
            yield
        finally:
            feeder.cancel()
            await asyncio.gather(feeder, return_exceptions=True)

    async def _feed(self, number: int, data: bytes) -> None:
        with contextlib.suppress(SandboxLostError):  # whoever reads the output is told
            await self._send_all(number, frames.INPUT, data)
            await self._send(number, frames.INPUT_END)

    async def _send_all(self, number: int, kind: int, data: bytes) -> None:
        for start in range(0, len(data), frames.CHUNK * 4):
            await self._send(number, kind, data[start : start + frames.CHUNK * 4])

    async def _send(self, number: int, kind: int, payload: bytes = b"") -> None:
        if self._lost is not None:
            raise self._lost
        self._writer.write(frames.pack(number, kind, payload))
        try:
            await self._patient(self._writer.drain(), time.monotonic())
        except OSError as exc:
            raise self._lost or SandboxLostError("The sandbox ended") from exc

    async def _patient[T](self, owed: Coroutine[Any, Any, T], due: float) -> T:
        """Wait for what the supervisor owes from ``due`` on, for as long as it says anything."""
        waiting = asyncio.ensure_future(owed)
        try:
            while not waiting.done():
                left = max(due, self._heard) + _SILENCE_SEC - time.monotonic()
                if left <= 0:
                    raise self._broken(f"said nothing for {_SILENCE_SEC:g}s")
                await asyncio.wait([waiting], timeout=min(left, _SILENCE_SEC))
            return waiting.result()
        finally:
            waiting.cancel()

    def _broken(self, what: str) -> SandboxLostError:
        self._lost = SandboxLostError(f"The sandbox broke the protocol: it {what}")
        self._writer.close()
        return self._lost


def _answer(payload: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(payload)
    if (error := answer.get("error")) is None:
        return answer
    number, path = answer.get("errno"), answer.get("path")
    if isinstance(number, int) and path:
        raise OSError(number, str(error), str(path))
    raise ValueError(f"The sandbox refused: {error}")


class Listener:
    """Waits for exactly one supervisor on a socket that vanishes once it came."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._came = asyncio.Event()
        self._channel: Channel | None = None
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Start to listen."""
        self._server = await asyncio.start_unix_server(self._accept, self._path)
        self._path.chmod(0o666)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._channel is not None:  # whoever comes second is not the supervisor
            writer.close()
            return
        self._channel = Channel(reader, writer)
        self._came.set()

    async def accepted(self) -> Channel:
        """Wait for the supervisor's connection, which has not greeted yet."""
        await self._came.wait()
        assert self._channel is not None
        return self._channel

    async def close(self) -> None:
        """Stop listening and remove the socket."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._path.unlink(missing_ok=True)
