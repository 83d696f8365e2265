"""The durable memory of a rollout server."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from osmosis_ai.rollout.server.store.admissions import NewRollout, Withdrawal
from osmosis_ai.rollout.server.store.callbacks import (
    CallbackUpdate,
    NewCallback,
    StoredCallbacks,
)
from osmosis_ai.rollout.server.store.change import Change
from osmosis_ai.rollout.server.store.database import database_now, open_database
from osmosis_ai.rollout.server.store.errors import StoreUnavailableError
from osmosis_ai.rollout.server.store.feed import Feed
from osmosis_ai.rollout.server.store.keys import StoreKeys
from osmosis_ai.rollout.server.store.progress import Cancellation, LeaseRenewal, StatusChange
from osmosis_ai.rollout.server.store.records import (
    Record,
    begins_with,
    read_record,
    select_records,
)
from osmosis_ai.rollout.server.store.results import RetentionStart, TerminalResult
from osmosis_ai.rollout.server.store.retention import Keep, Prune, Pruned
from osmosis_ai.rollout.server.store.servers import Claim, Claimed, Departure, Heartbeat, Reclaim
from osmosis_ai.rollout.server.store.tables import rollouts
from osmosis_ai.rollout.server.store.writer import Writer
from osmosis_ai.rollout.types.status import RolloutStatus

CHANGES: tuple[type[Change[Any]], ...] = (
    NewRollout,
    StatusChange,
    LeaseRenewal,
    Cancellation,
    TerminalResult,
    NewCallback,
    RetentionStart,
    CallbackUpdate,
    Withdrawal,
    Heartbeat,
    Claim,
    Departure,
    Reclaim,
    Prune,
)
"""Every kind of change, in the order in which one commit makes them.

Nobody waits for a status change, so it may share the commit of the result that
follows it, and must come before it. All others may be made in any order.
"""


@dataclass(frozen=True)
class Wanted:
    """Which records to list, newest first: at most ``limit``, before the number ``before``."""

    statuses: frozenset[RolloutStatus] = frozenset()
    prefix: str = ""
    since: float | None = None
    before: int | None = None
    limit: int = 100


class Store:
    """Rollouts, their results and callbacks in a database. Changes are durable on return.

    Ids, prefixes and texts must be valid Unicode without NUL. Every method that
    asks the database raises ``StoreUnavailableError`` when it does not answer.
    """

    def __init__(self, database: AsyncEngine, writer: Writer, feed: Feed, keys: StoreKeys) -> None:
        self._database = database
        self._writer = writer
        self._feed = feed
        self._keys = keys
        self.shared = database.dialect.name == "postgresql"

    @property
    def feed(self) -> Feed:
        """The events."""
        return self._feed

    @property
    def keys(self) -> StoreKeys:
        """What makes tokens and seals credentials."""
        return self._keys

    def callbacks(self, server_id: str) -> StoredCallbacks:
        """The callbacks that a server has to deliver."""
        return StoredCallbacks(self._database, self._writer, self._keys, server_id)

    async def admit(self, rollout: NewRollout) -> int | None:
        """Take in a rollout; returns its number, or ``None`` when the id is taken."""
        return await self._writer.submit(rollout)

    async def withdraw(self, number: int) -> None:
        """Take back an admission that nobody was told of."""
        await self._writer.submit(Withdrawal(number))

    def move(self, change: StatusChange) -> None:
        """Note a status on the way; not waited for."""
        self._writer.post(change)

    async def finish(self, result: TerminalResult) -> bool:
        """Publish a result; ``False`` when the rollout has one or runs elsewhere."""
        return await self._writer.submit(result)

    async def start_retention(self, rollout_id: str, expires_at: float) -> None:
        """Begin the retention of a result that has none yet."""
        await self._writer.submit(RetentionStart(rollout_id, expires_at))

    async def ask_cancel(self, rollout_id: str, disposition: str) -> str | None:
        """Have a rollout cancelled by whoever runs it; the disposition that stands, if any."""
        return await self._writer.submit(Cancellation(rollout_id, disposition, time.time()))

    def renew_lease(self, rollout_id: str, lease_sec: float) -> None:
        """Note for the server that runs the rollout that somebody polls for it; not waited for."""
        self._writer.post(LeaseRenewal(rollout_id, lease_sec))

    async def lease_left(self, rollout_id: str) -> float:
        """Seconds that a lease lasts by the store, which polls at other servers renewed."""
        now = database_now(self._database.dialect.name)
        query = select(rollouts.c.lease_until - now).where(rollouts.c.id == rollout_id)
        async with self._reading() as connection:
            return float((await connection.execute(query)).scalar() or 0.0)

    async def find(self, rollout_id: str) -> Record | None:
        """What is known of a rollout."""
        query = select_records().where(rollouts.c.id == rollout_id)
        async with self._reading() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else read_record(row)

    async def result(self, rollout_id: str) -> bytes | None:
        """The encoded result, as long as it is kept."""
        query = select(rollouts.c.result).where(rollouts.c.id == rollout_id)
        async with self._reading() as connection:
            found: bytes | None = (await connection.execute(query)).scalar()
        return found

    async def select(self, wanted: Wanted) -> Sequence[Record]:
        """Records by what is wanted of them."""
        conditions: list[ColumnElement[bool]] = []
        if wanted.statuses:
            conditions.append(rollouts.c.status.in_([s.value for s in wanted.statuses]))
        if wanted.prefix:
            conditions.append(begins_with(wanted.prefix))
        if wanted.since is not None:
            conditions.append(rollouts.c.admitted_at >= wanted.since)
        if wanted.before is not None:
            conditions.append(rollouts.c.number < wanted.before)
        query = (
            select_records()
            .where(*conditions)
            .order_by(rollouts.c.number.desc())
            .limit(wanted.limit)
        )
        async with self._reading() as connection:
            return [read_record(row) for row in await connection.execute(query)]

    async def known(self, prefix: str) -> Sequence[str]:
        """Ids in flight or with a result that is kept, oldest first."""
        kept = or_(rollouts.c.expires_at.is_(None), rollouts.c.expires_at > time.time())
        query = (
            select(rollouts.c.id)
            .where(and_(kept, begins_with(prefix)) if prefix else kept)
            .order_by(rollouts.c.number)
        )
        async with self._reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def unfinished(self, server_id: str) -> Sequence[str]:
        """Ids of what a server runs, by the store."""
        query = select(rollouts.c.id).where(
            rollouts.c.owner == server_id, rollouts.c.finished_at.is_(None)
        )
        async with self._reading() as connection:
            return list((await connection.execute(query)).scalars())

    async def beat(self, server_id: str, *, first: bool = False) -> bool:
        """Give a sign of life; ``False`` when the server was taken for dead already."""
        return await self._writer.submit(Heartbeat(server_id, first))

    async def claim(
        self, server_id: str, dead_after_sec: float, retention_sec: float
    ) -> Sequence[Claimed]:
        """Take over what belongs to no living server; each rollout goes to one server only."""
        return await self._writer.submit(Claim(server_id, dead_after_sec, retention_sec))

    async def reclaim(self, server_id: str, ids: Sequence[str]) -> Sequence[Claimed]:
        """Take up what is the server's by the store, and of which it does not know."""
        return await self._writer.submit(Reclaim(server_id, ids))

    async def leave(self, server_id: str) -> None:
        """End as a server; what is unfinished may be taken over at once."""
        await self._writer.submit(Departure(server_id))

    async def prune(self, keep: Keep) -> Pruned:
        """Forget one batch of what is not to be kept."""
        return await self._writer.submit(Prune(keep))

    async def count(self) -> int:
        """How many rollouts are known."""
        async with self._reading() as connection:
            found = await connection.execute(select(func.count()).select_from(rollouts))
            return found.scalar() or 0

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with self._database.connect() as connection:
                yield connection
        except (SQLAlchemyError, OSError) as exc:
            raise StoreUnavailableError(f"the store does not answer: {type(exc).__name__}") from exc


@asynccontextmanager
async def open_store(url: URL, keys: StoreKeys) -> AsyncIterator[Store]:
    """Open a store for the block; leaving it writes what was submitted.

    Raises:
        StoreError: the database cannot be used; the text says why.
    """
    async with open_database(url) as database:
        feed = Feed(database)
        writer = Writer(database, CHANGES, feed.wake)
        async with writer.running():
            yield Store(database, writer, feed, keys)
