"""One task that writes everything, so that many changes share one commit."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from osmosis_ai.rollout.server.store.change import Change
from osmosis_ai.rollout.server.store.errors import StoreClosedError, StoreUnavailableError

logger = logging.getLogger(__name__)

CHANNEL = "osmosis_rollouts"
_ORDER_LOCK = 0x6F736D32
_LARGEST_BATCH = 200
"""Bounds how long one batch keeps the event loop busy with building statements."""

_WOKEN_AT_ONCE = 4
"""Submitters go on a few at a time, so that timers and other requests come in between."""


@dataclass
class _Job:
    change: Change[Any]
    done: asyncio.Future[Any]


class Writer:
    """Commits changes in batches: what is submitted while a commit runs shares the next one.

    Commits of all servers of a PostgreSQL store follow one another, so events
    have the order in which they appear.

    Args:
        database: what is written to.
        kinds: every kind of change, in the order in which one commit writes them.
        on_commit: called after each commit.
    """

    def __init__(
        self,
        database: AsyncEngine,
        kinds: Sequence[type[Change[Any]]],
        on_commit: Callable[[], None],
    ) -> None:
        self._database = database
        self._kinds = kinds
        self._on_commit = on_commit
        self._shared = database.dialect.name == "postgresql"
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

    async def submit[R](self, change: Change[R]) -> R:
        """Make a change; durable when this returns. Cancelling the caller does not undo it.

        Raises:
            StoreUnavailableError: it was not made.
            StoreClosedError: nor will it be.
        """
        return await self.post(change)

    def post[R](self, change: Change[R]) -> asyncio.Future[R]:
        """Make a change that nobody waits for, unless they await what is returned."""
        if type(change) not in self._kinds:
            raise TypeError(f"{type(change).__name__} is not among the writer's kinds of changes")
        done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        done.add_done_callback(_retrieve)  # nobody may be left to hear of an error
        if self._closing:
            done.set_exception(StoreClosedError("the store is closed"))
            return done
        self._jobs.append(_Job(change, done))
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
                if not job.done.done():
                    problem = f"the store did not take it: {type(exc).__name__}"
                    job.done.set_exception(StoreUnavailableError(problem))
            return
        self._on_commit()
        for number, (job, result) in enumerate(results, 1):
            if not job.done.done():
                job.done.set_result(result)
            if number % _WOKEN_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _transaction(self, batch: list[_Job]) -> list[tuple[_Job, Any]]:
        """Write a batch, kind by kind, all or nothing; returns the result of each job."""
        by_kind: dict[type[Change[Any]], list[_Job]] = {kind: [] for kind in self._kinds}
        for job in batch:
            by_kind[type(job.change)].append(job)
        results: list[tuple[_Job, Any]] = []
        async with self._database.begin() as connection:
            if self._shared:
                await connection.execute(select(func.pg_advisory_xact_lock(_ORDER_LOCK)))
            for kind, jobs in by_kind.items():
                if jobs:
                    done = await kind.apply(connection, [job.change for job in jobs])
                    results += zip(jobs, done, strict=True)
            if self._shared:
                await connection.execute(select(func.pg_notify(CHANNEL, "")))
        return results


def _lost_connection(exc: BaseException) -> bool:
    return isinstance(exc, OSError) or (isinstance(exc, DBAPIError) and exc.connection_invalidated)


def _retrieve(done: asyncio.Future[Any]) -> None:
    if not done.cancelled():
        done.exception()
