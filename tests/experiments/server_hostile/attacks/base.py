"""What attacks have in common."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field

from benchmarks.server_load.wire import Connection


@dataclass
class Target:
    """The server, and a tally of what it answered.

    Attributes:
        scale: how hard to attack; 1 as the tables say.
    """

    port: int
    scale: float = 1.0
    answers: Counter[str] = field(default_factory=Counter)

    def times(self, number: float) -> int:
        """A number of connections or requests, scaled."""
        return max(1, round(number * self.scale))


type Attack = Callable[[Target], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def every(seconds: float, act: Callable[[], object]) -> AsyncIterator[None]:
    """Start ``act()``, a coroutine, at a steady rate while the block runs; then cancel the rest."""
    running: set[asyncio.Task[object]] = set()

    async def pace() -> None:
        due = time.monotonic()
        while True:
            task = asyncio.ensure_future(act())  # type: ignore[call-overload]
            running.add(task)
            task.add_done_callback(running.discard)
            due += seconds
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    pacing = asyncio.create_task(pace())
    try:
        yield
    finally:
        pacing.cancel()
        for task in list(running):
            task.cancel()
        await asyncio.gather(pacing, *running, return_exceptions=True)


async def ask(target: Target, path: str, body: dict[str, object]) -> dict[str, str]:
    """POST as an honest caller would, on a connection of its own."""
    connection = Connection(target.port)
    try:
        return (await connection.ask("POST", path, body))[1]
    finally:
        await connection.close()


async def raw(target: Target, parts: AsyncIterator[bytes]) -> None:
    """Send bytes on a connection of their own and tally the status of the answer."""
    answer = "unanswered"
    writer: asyncio.StreamWriter | None = None
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        reading = asyncio.create_task(reader.readline())
        with suppress(ConnectionError):  # an answer may come before all is sent
            async for part in parts:
                if reading.done():
                    break
                writer.write(part)
                await writer.drain()
        line = await reading
        answer = line.split(b" ")[1].decode() if line.startswith(b"HTTP/") else "cut"
    except OSError:
        answer = "cut"
    finally:
        target.answers[answer] += 1
        if writer is not None:
            writer.transport.abort()


def head(method: str, path: str, *lines: str, key: str = "benchmark") -> bytes:
    """The beginning of a request."""
    common = ("Host: x", f"Authorization: Bearer {key}", "Content-Type: application/json")
    return "\r\n".join((f"{method} {path} HTTP/1.1", *common, *lines, "", "")).encode("latin-1")
