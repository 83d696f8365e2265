"""Guessing: keys and lease tokens."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.experiments.server_hostile.attacks.base import Target, ask, every, head
from tests.experiments.server_hostile.honest import rollout

PER_SEC = 300
CONNECTIONS = 20


@asynccontextmanager
async def wrong_tokens(target: Target) -> AsyncIterator[None]:
    """300 guesses a second on kept connections: keys, and tokens of known and unknown rollouts."""
    await ask(target, "/rollout", rollout("guessed-at", None))
    count = target.times(CONNECTIONS)
    guessers = [_Guesser(target) for _ in range(count)]
    turns = itertools.cycle(guessers)
    try:
        async with every(1 / target.times(PER_SEC), lambda: next(turns).guess()):
            yield
    finally:
        for guesser in guessers:
            guesser.close()
        await ask(target, "/rollout/cancel", {"ids": ["guessed-at"]})


class _Guesser:
    def __init__(self, target: Target) -> None:
        self._target = target
        self._free = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._number = 0

    async def guess(self) -> None:
        if self._free.locked():
            self._target.answers["late"] += 1
            return
        async with self._free:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._target.port)
            reader, writer = self._streams
            self._number += 1
            writer.write(_guess(self._number))
            try:
                answer = await reader.readuntil(b"\r\n\r\n")
                length = answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length))
                self._target.answers[answer.split(b" ")[1].decode()] += 1
            except asyncio.IncompleteReadError:
                self._target.answers["cut"] += 1
                self.close()

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


def _guess(number: int) -> bytes:
    token = f"X-Osmosis-Rollout-Lease: {number:043}"
    match number % 4:
        case 0:
            return head("GET", "/rollouts", key=f"guess-{number}")
        case 1:
            return head("GET", "/rollout/guessed-at/result", token)
        case 2:
            return head("GET", f"/rollout/unknown-{number}/result", token, key="guess")
        case _:
            return head("POST", "/rollout/cancel", "Content-Length: 2", key="guess") + b"{}"
