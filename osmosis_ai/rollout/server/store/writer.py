"""One task that writes everything, so that many changes share one commit."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from osmosis_ai.rollout.server.store.errors import StoreClosedError, StoreUnavailableError

logger = logging.getLogger(__name__)

CHANNEL = "osmosis_rollouts"
_ORDER_LOCK = 0x6F736D32
_LARGEST_BATCH = 200
"""Bounds how long one batch keeps the event loop busy with building statements."""

_WOKEN_AT_ONCE = 4
"""Who waited goes on in turns, so that timers and other requests come in between."""


@dataclass(frozen=True)
class Change[T, R]:
    """A kind of change that is made to many rollouts with few statements.

    ``apply`` returns one result per item. Within one commit changes of a lower
    ``rank`` come first.
    """

    rank: int
    apply: Callable[[AsyncConnection, Sequence[T]], Awaitable[Sequence[R]]]


@dataclass
class _Job:
    change: Change[Any, Any]
    item: Any
    done: asyncio.Future[Any]


class Writer:
    """Commits what is submitted, in batches: who comes while a commit runs shares the next.

    Commits of all servers of a PostgreSQL store follow one another, so events
    have the order in which they appear.
    """

    def __init__(self, engine: AsyncEngine, on_commit: Callable[[], None]) -> None:
        self._engine = engine
        self._on_commit = on_commit
        self._shared = engine.dialect.name == "postgresql"
        self._jobs: deque[_Job] = deque()
        self._wanted = asyncio.Event()
        self._closing = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Write within the block; leaving it first writes what was submitted."""
        writing = asyncio.create_task(self._write(), name="osmosis-store-writer")
        try:
            yield
        finally:
            self._closing = True
            self._wanted.set()
            await writing

    async def submit[T, R](self, change: Change[T, R], item: T) -> R:
        """Make a change; durable when this returns. Cancelling the caller does not undo it.

        Raises:
            StoreUnavailableError: it was not made.
            StoreClosedError: nor will it be.
        """
        result: R = await asyncio.shield(self.post(change, item))
        return result

    def post[T, R](self, change: Change[T, R], item: T) -> asyncio.Future[R]:
        """The same for who does not wait."""
        done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_retrieve)  # nobody may be left to hear of an error
        if self._closing:
            done.set_exception(StoreClosedError("the store is closed"))
            return done
        self._jobs.append(_Job(change, item, done))
        self._wanted.set()
        return done

    async def _write(self) -> None:
        while not (self._closing and not self._jobs):
            await self._wanted.wait()
            self._wanted.clear()
            while self._jobs:
                batch = [self._jobs.popleft() for _ in range(min(len(self._jobs), _LARGEST_BATCH))]
                await self._commit(batch)

    async def _commit(self, batch: list[_Job]) -> None:
        try:
            results = await self._transaction(batch)
        except (SQLAlchemyError, OSError) as exc:
            if len(batch) > 1 and not _lost_connection(exc):
                for job in batch:  # one that cannot be written must not take others with it
                    await self._commit([job])
                return
            logger.warning("The store did not take %d change(s): %s", len(batch), exc)
            for job in batch:
                error = StoreUnavailableError(f"the store did not take it: {type(exc).__name__}")
                job.done.set_exception(error)
            return
        self._on_commit()
        for number, (job, result) in enumerate(results, 1):
            if not job.done.done():
                job.done.set_result(result)
            if number % _WOKEN_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _transaction(self, batch: list[_Job]) -> list[tuple[_Job, Any]]:
        results: list[tuple[_Job, Any]] = []
        ordered = sorted(batch, key=lambda job: job.change.rank)
        async with self._engine.begin() as connection:
            if self._shared:
                await connection.execute(select(func.pg_advisory_xact_lock(_ORDER_LOCK)))
            for _, group in groupby(ordered, key=lambda job: job.change.rank):
                jobs = list(group)
                done = await jobs[0].change.apply(connection, [job.item for job in jobs])
                results += zip(jobs, done, strict=True)
            if self._shared:
                await connection.execute(select(func.pg_notify(CHANNEL, "")))
        return results


def _lost_connection(exc: BaseException) -> bool:
    return isinstance(exc, OSError) or (isinstance(exc, DBAPIError) and exc.connection_invalidated)


def _retrieve(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()
