"""Bodies that are too large: announced, or only seen as they come, with and without the key."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.experiments.server_hostile.attacks.base import Target, every, head, raw

PER_SEC = 20
_CHUNK = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
_CHUNKS = 160  # 10 MiB


@asynccontextmanager
async def huge_bodies(target: Target) -> AsyncIterator[None]:
    """20 requests a second: a gibibyte announced, or 10 MiB without saying so; one in ten of
    the latter has the key and is read up to the limit.
    """
    numbers = itertools.count()

    async def one() -> None:
        number = next(numbers)
        await raw(target, _announced() if number % 2 else _chunked(number % 20 == 0))

    async with every(1 / target.times(PER_SEC), one):
        yield


async def _announced() -> AsyncIterator[bytes]:
    yield head("POST", "/rollout", f"Content-Length: {2**30}")
    for _ in range(_CHUNKS):
        yield b"x" * 0x10000


async def _chunked(with_key: bool) -> AsyncIterator[bytes]:
    key = "benchmark" if with_key else "guessed"
    yield head("POST", "/rollout", "Transfer-Encoding: chunked", key=key)
    for _ in range(_CHUNKS):
        yield _CHUNK
