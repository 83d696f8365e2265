"""Slots for concurrent work, with a count of who waits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    """At most ``limit`` holders at once (``None``: any number), first come first served."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.running = 0
        self.queued = 0
        self._semaphore = None if limit is None else asyncio.Semaphore(limit)

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[float]:
        """Wait for a slot and hold it; yields the seconds spent waiting."""
        loop = asyncio.get_running_loop()
        asked = loop.time()
        if self._semaphore is not None:
            self.queued += 1
            try:
                await self._semaphore.acquire()
            finally:
                self.queued -= 1
        self.running += 1
        try:
            yield loop.time() - asked
        finally:
            self.running -= 1
            if self._semaphore is not None:
                self._semaphore.release()
