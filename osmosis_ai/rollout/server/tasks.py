"""Tasks with an owner, and work that no cancellation leaves half done."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

logger = logging.getLogger(__name__)


class Tasks:
    """Tasks that run until they end; their owner waits for them.

    What they raise is logged, unless each of them is ``awaited`` by somebody who hears of it.
    """

    def __init__(self, *, awaited: bool = False) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._awaited = awaited

    def __len__(self) -> int:
        return len(self._tasks)

    def start[T](self, work: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        """Begin at once: the work has run up to its first pause when this returns."""
        loop = asyncio.get_running_loop()
        task = asyncio.Task(work, loop=loop, name=name, eager_start=True)
        if not task.done():
            self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def wait(self, timeout_sec: float | None) -> bool:
        """Wait for all; whether they ended in time."""
        if not self._tasks:
            return True
        _, pending = await asyncio.wait(set(self._tasks), timeout=timeout_sec)
        return not pending

    def cancel(self) -> None:
        """Cancel all."""
        for task in set(self._tasks):
            task.cancel()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        failed = None if task.cancelled() else task.exception()
        if failed is not None and not self._awaited:
            logger.error("A task of the server failed", exc_info=failed)


async def to_the_end[T](work: Coroutine[Any, Any, T]) -> T:
    """Await short work that must not be left half done; a cancellation meanwhile is dropped."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            current = asyncio.current_task()
            if current is not None:
                current.uncancel()
        except BaseException:
            break
    return task.result()
