"""Servers that share a store: who lives, and who takes over what a dead one left."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from osmosis_ai.rollout.server.store.change import Change
from osmosis_ai.rollout.server.store.database import database_now
from osmosis_ai.rollout.server.store.records import (
    Record,
    has_pending_callback,
    read_record,
    select_records,
)
from osmosis_ai.rollout.server.store.tables import callbacks, rollouts, servers

_LOADED_AT_ONCE = 500


@dataclass(frozen=True)
class Claimed:
    """A rollout taken over from a server that ended, with what running it again needs.

    ``callbacks`` are the kinds that it has in the store already.
    """

    record: Record
    request: bytes
    sealed: bytes | None
    callbacks: frozenset[str]


@dataclass(frozen=True)
class Heartbeat(Change[bool]):
    """A server's sign of life; gives back whether it is still taken for alive.

    The first one registers the server.
    """

    server_id: str
    first: bool = False

    @classmethod
    async def apply(cls, connection: AsyncConnection, changes: Sequence[Self]) -> Sequence[bool]:
        """Note the time, by the database's clock."""
        now = database_now(connection.dialect.name)
        alive: list[bool] = []
        for change in changes:
            if change.first:
                row = {"id": change.server_id, "started_at": now, "heartbeat_at": now}
                await connection.execute(insert(servers).values(**row, left=False))
                alive.append(True)
                continue
            beaten = await connection.execute(
                update(servers)
                .where(servers.c.id == change.server_id, servers.c.left.is_(False))
                .values(heartbeat_at=now)
            )
            alive.append(beaten.rowcount == 1)
        return alive


@dataclass(frozen=True)
class Departure(Change[None]):
    """A server ends; what it leaves unfinished may be taken over at once."""

    server_id: str

    @classmethod
    async def apply(cls, connection: AsyncConnection, changes: Sequence[Self]) -> Sequence[None]:
        """Note that the servers have left, and when."""
        now = database_now(connection.dialect.name)
        ids = [change.server_id for change in changes]
        leaving = update(servers).where(servers.c.id.in_(ids)).values(left=True, heartbeat_at=now)
        await connection.execute(leaving)
        return [None] * len(changes)


@dataclass(frozen=True)
class Claim(Change[Sequence[Claimed]]):
    """A server takes over everything whose owner is not alive; gives back what is unfinished.

    ``dead_after_sec``: how old a last sign of life may be; 0 takes from all others.
    """

    server_id: str
    dead_after_sec: float
    retention_sec: float

    @classmethod
    async def apply(
        cls, connection: AsyncConnection, changes: Sequence[Self]
    ) -> Sequence[Sequence[Claimed]]:
        """Forget the dead servers, and give what they had to the server that claims."""
        return [await change._take_over(connection) for change in changes]

    async def _take_over(self, connection: AsyncConnection) -> Sequence[Claimed]:
        now = database_now(connection.dialect.name)
        gap = (now - servers.c.heartbeat_at).label("gap")
        dead = await connection.execute(
            delete(servers)
            .where(
                servers.c.id != self.server_id,
                or_(servers.c.left, servers.c.heartbeat_at <= now - self.dead_after_sec),
            )
            .returning(servers.c.id, servers.c.heartbeat_at, gap)
        )
        await _extend_retention(connection, dead.all())
        orphaned = rollouts.c.owner.not_in(select(servers.c.id))
        finished = rollouts.c.finished_at.is_not(None)
        await connection.execute(
            update(rollouts)
            .where(orphaned, finished, rollouts.c.expires_at.is_(None))
            .values(expires_at=now + self.retention_sec)
        )
        await connection.execute(
            update(rollouts)
            .where(orphaned, finished, has_pending_callback(rollouts.c.number))
            .values(owner=self.server_id)
        )
        claimed = await connection.execute(
            update(rollouts)
            .where(orphaned, rollouts.c.finished_at.is_(None))
            .values(owner=self.server_id, attempt=rollouts.c.attempt + 1)
            .returning(rollouts.c.number)
        )
        return await _load_claimed(connection, [row.number for row in claimed])


@dataclass(frozen=True)
class Reclaim(Change[Sequence[Claimed]]):
    """A server takes up those of its own rollouts that it does not know of."""

    server_id: str
    ids: Sequence[str]

    @classmethod
    async def apply(
        cls, connection: AsyncConnection, changes: Sequence[Self]
    ) -> Sequence[Sequence[Claimed]]:
        """Begin another attempt of each that has not ended."""
        return [await change._take_up(connection) for change in changes]

    async def _take_up(self, connection: AsyncConnection) -> Sequence[Claimed]:
        claimed = await connection.execute(
            update(rollouts)
            .where(
                rollouts.c.id.in_(self.ids),
                rollouts.c.owner == self.server_id,
                rollouts.c.finished_at.is_(None),
            )
            .values(attempt=rollouts.c.attempt + 1)
            .returning(rollouts.c.number)
        )
        return await _load_claimed(connection, [row.number for row in claimed])


async def _extend_retention(connection: AsyncConnection, dead: Iterable[Any]) -> None:
    """Keep the results of dead servers longer by the time since they lived."""
    for server in dead:
        # Nobody could read a result while its only server was down.
        await connection.execute(
            update(rollouts)
            .where(rollouts.c.owner == server.id, rollouts.c.expires_at > server.heartbeat_at)
            .values(expires_at=rollouts.c.expires_at + server.gap)
        )


async def _load_claimed(connection: AsyncConnection, numbers: list[int]) -> list[Claimed]:
    loaded: list[Claimed] = []
    for first in range(0, len(numbers), _LOADED_AT_ONCE):
        some = numbers[first : first + _LOADED_AT_ONCE]
        had: dict[int, set[str]] = {}
        for row in await connection.execute(
            select(callbacks.c.rollout, callbacks.c.kind).where(callbacks.c.rollout.in_(some))
        ):
            had.setdefault(row.rollout, set()).add(row.kind)
        rows: Any = await connection.execute(
            select_records()
            .add_columns(rollouts.c.request, rollouts.c.sealed)
            .where(rollouts.c.number.in_(some))
            .order_by(rollouts.c.number)
        )
        loaded += [
            Claimed(
                read_record(row), row.request, row.sealed, frozenset(had.get(row.number, set()))
            )
            for row in rows
        ]
    return loaded
