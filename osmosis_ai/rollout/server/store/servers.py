"""Servers that share a store: who lives, and who takes over what a dead one left."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from osmosis_ai.rollout.server.store.engine import database_now
from osmosis_ai.rollout.server.store.rollouts import is_pending, read_record, select_records
from osmosis_ai.rollout.server.store.rows import Claimed
from osmosis_ai.rollout.server.store.tables import callbacks, rollouts, servers
from osmosis_ai.rollout.server.store.writer import Change


@dataclass(frozen=True)
class Beat:
    """A sign of life; the first one registers the server."""

    server: str
    first: bool = False


@dataclass(frozen=True)
class Claim:
    """Take over everything whose owner is not alive.

    ``dead_after_sec``: how old a last sign of life may be; 0 takes from all others.
    """

    server: str
    dead_after_sec: float
    retention_sec: float


async def _beat(connection: AsyncConnection, items: Sequence[Beat]) -> Sequence[bool]:
    """Whether each server is still taken for alive."""
    now = database_now(connection.dialect.name)
    alive: list[bool] = []
    for item in items:
        if item.first:
            row = {"id": item.server, "started_at": now, "heartbeat_at": now, "left": False}
            await connection.execute(insert(servers).values(**row))
            alive.append(True)
            continue
        beaten = await connection.execute(
            update(servers)
            .where(servers.c.id == item.server, servers.c.left.is_(False))
            .values(heartbeat_at=now)
        )
        alive.append(beaten.rowcount == 1)
    return alive


async def _leave(connection: AsyncConnection, items: Sequence[str]) -> Sequence[None]:
    now = database_now(connection.dialect.name)
    leaving = update(servers).where(servers.c.id.in_(items)).values(left=True, heartbeat_at=now)
    await connection.execute(leaving)
    return [None] * len(items)


async def _claim(
    connection: AsyncConnection, items: Sequence[Claim]
) -> Sequence[Sequence[Claimed]]:
    return [await _claim_one(connection, item) for item in items]


async def _claim_one(connection: AsyncConnection, item: Claim) -> Sequence[Claimed]:
    now = database_now(connection.dialect.name)
    gap = (now - servers.c.heartbeat_at).label("gap")
    dead = await connection.execute(
        delete(servers)
        .where(
            servers.c.id != item.server,
            or_(servers.c.left, servers.c.heartbeat_at <= now - item.dead_after_sec),
        )
        .returning(servers.c.id, servers.c.heartbeat_at, gap)
    )
    for row in dead.all():
        # Nobody could read a result while its only server was down.
        await connection.execute(
            update(rollouts)
            .where(rollouts.c.owner == row.id, rollouts.c.expires_at > row.heartbeat_at)
            .values(expires_at=rollouts.c.expires_at + row.gap)
        )
    orphaned = rollouts.c.owner.not_in(select(servers.c.id))
    await connection.execute(
        update(rollouts)
        .where(orphaned, rollouts.c.finished_at.is_not(None), rollouts.c.expires_at.is_(None))
        .values(expires_at=now + item.retention_sec)
    )
    await connection.execute(
        update(rollouts)
        .where(orphaned, rollouts.c.finished_at.is_not(None), is_pending(rollouts.c.number))
        .values(owner=item.server)
    )
    claimed = await connection.execute(
        update(rollouts)
        .where(orphaned, rollouts.c.finished_at.is_(None))
        .values(owner=item.server, attempt=rollouts.c.attempt + 1)
        .returning(rollouts.c.number)
    )
    return await _load_claimed(connection, [row.number for row in claimed])


async def _reclaim(
    connection: AsyncConnection, items: Sequence[tuple[str, Sequence[str]]]
) -> Sequence[Sequence[Claimed]]:
    found: list[Sequence[Claimed]] = []
    for server, ids in items:
        claimed = await connection.execute(
            update(rollouts)
            .where(
                rollouts.c.id.in_(ids),
                rollouts.c.owner == server,
                rollouts.c.finished_at.is_(None),
            )
            .values(attempt=rollouts.c.attempt + 1)
            .returning(rollouts.c.number)
        )
        found.append(await _load_claimed(connection, [row.number for row in claimed]))
    return found


async def _load_claimed(connection: AsyncConnection, numbers: list[int]) -> list[Claimed]:
    loaded: list[Claimed] = []
    for first in range(0, len(numbers), 500):
        some = numbers[first : first + 500]
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


BEAT: Change[Beat, bool] = Change(20, _beat)
CLAIM: Change[Claim, Sequence[Claimed]] = Change(21, _claim)
LEAVE: Change[str, None] = Change(22, _leave)
RECLAIM: Change[tuple[str, Sequence[str]], Sequence[Claimed]] = Change(23, _reclaim)
