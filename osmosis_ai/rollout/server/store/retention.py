"""Forgetting: results after their retention, records by age and by count."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import and_, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from osmosis_ai.rollout.server.store.rollouts import is_pending
from osmosis_ai.rollout.server.store.rows import Pruned
from osmosis_ai.rollout.server.store.tables import events, rollouts
from osmosis_ai.rollout.server.store.writer import Change

BATCH = 500
"""Rows per transaction, so that a prune never holds up an admission for long."""


@dataclass(frozen=True)
class Keep:
    """What is kept: records for ``age_sec`` after their end, and ``count`` ended ones at most."""

    age_sec: float
    count: int


async def _prune(connection: AsyncConnection, items: Sequence[Keep]) -> Sequence[Pruned]:
    return [await _prune_one(connection, item) for item in items]


async def _prune_one(connection: AsyncConnection, keep: Keep) -> Pruned:
    now = time.time()
    expired = and_(rollouts.c.expires_at <= now, rollouts.c.result.is_not(None))
    numbers = select(rollouts.c.number).where(expired).limit(BATCH)
    dropped = await connection.execute(
        update(rollouts).where(rollouts.c.number.in_(numbers)).values(result=None)
    )
    ended = and_(rollouts.c.expires_at <= now, ~is_pending(rollouts.c.number))
    kept = await connection.execute(
        select(func.count()).select_from(rollouts).where(rollouts.c.finished_at.is_not(None))
    )
    surplus = max(0, (kept.scalar() or 0) - keep.count)
    oldest = (
        select(rollouts.c.number)
        .where(ended)
        .order_by(rollouts.c.finished_at, rollouts.c.number)
        .limit(min(surplus, BATCH))
    )
    aged = (
        select(rollouts.c.number)
        .where(ended, rollouts.c.finished_at <= now - keep.age_sec)
        .limit(BATCH)
    )
    gone: list[str] = []
    for chosen in ([oldest] if surplus else []) + [aged]:
        found = [row.number for row in await connection.execute(chosen)]
        removed = await connection.execute(
            delete(rollouts).where(rollouts.c.number.in_(found)).returning(rollouts.c.id)
        )
        gone += [row.id for row in removed]
    await _prune_events(connection, now - keep.age_sec, 8 * keep.count)
    return Pruned(dropped.rowcount, len(gone), tuple(gone))


async def _prune_events(connection: AsyncConnection, before: float, count: int) -> None:
    last = (await connection.execute(select(func.max(events.c.seq)))).scalar() or 0
    # By the number alone, which is an index; the oldest of them have the oldest times.
    aged = select(func.max(events.c.seq)).where(
        events.c.seq.in_(select(events.c.seq).order_by(events.c.seq).limit(BATCH * 8)),
        events.c.at <= before,
    )
    upto = max((await connection.execute(aged)).scalar() or 0, last - count)
    await connection.execute(
        delete(events).where(
            events.c.seq.in_(
                select(events.c.seq)
                .where(events.c.seq <= upto)
                .order_by(events.c.seq)
                .limit(BATCH * 8)
            )
        )
    )


PRUNE: Change[Keep, Pruned] = Change(30, _prune)
