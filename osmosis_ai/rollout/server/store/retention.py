"""Forgets results after their retention, and records by age and by count."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from sqlalchemy import and_, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from osmosis_ai.rollout.server.store.change import Change
from osmosis_ai.rollout.server.store.records import has_pending_callback
from osmosis_ai.rollout.server.store.tables import events, rollouts

BATCH = 500
"""Rows per transaction, so that a prune never holds up an admission for long."""


@dataclass(frozen=True)
class Keep:
    """What is kept: records for ``age_sec`` after their end, and ``count`` ended ones at most."""

    age_sec: float
    count: int


@dataclass(frozen=True)
class Pruned:
    """What a pruning removed."""

    results: int = 0
    records: int = 0
    ids: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Prune(Change[Pruned]):
    """Forgets one batch of what is not to be kept."""

    keep: Keep

    @classmethod
    async def apply(cls, connection: AsyncConnection, changes: Sequence[Self]) -> Sequence[Pruned]:
        """Remove results, records and events."""
        return [await change._prune(connection) for change in changes]

    async def _prune(self, connection: AsyncConnection) -> Pruned:
        now = time.time()
        expired = and_(rollouts.c.expires_at <= now, rollouts.c.result.is_not(None))
        numbers = select(rollouts.c.number).where(expired).limit(BATCH)
        dropped = await connection.execute(
            update(rollouts).where(rollouts.c.number.in_(numbers)).values(result=None)
        )
        ended_ones = (
            select(rollouts.c.number, rollouts.c.id)
            .where(rollouts.c.expires_at <= now, ~has_pending_callback(rollouts.c.number))
            .order_by(rollouts.c.finished_at, rollouts.c.number)
        )
        kept = await connection.execute(
            select(func.count()).select_from(rollouts).where(rollouts.c.finished_at.is_not(None))
        )
        surplus = max(0, (kept.scalar() or 0) - self.keep.count)
        surplus_ones = ended_ones.limit(min(surplus, BATCH))
        aged = ended_ones.where(rollouts.c.finished_at <= now - self.keep.age_sec).limit(BATCH)
        gone: list[str] = []
        for chosen in ([surplus_ones] if surplus else []) + [aged]:
            found = {row.number: row.id for row in await connection.execute(chosen)}
            await connection.execute(delete(rollouts).where(rollouts.c.number.in_(list(found))))
            gone += found.values()
        await _prune_events(connection, now - self.keep.age_sec, 8 * self.keep.count)
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
