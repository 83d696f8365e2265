"""Changes to rollouts while they run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from sqlalchemy import bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from osmosis_ai.rollout.server.store.change import Change
from osmosis_ai.rollout.server.store.database import database_now
from osmosis_ai.rollout.server.store.events import CANCEL_ASKED, add_events
from osmosis_ai.rollout.server.store.tables import rollouts
from osmosis_ai.rollout.types.status import RolloutStatus


@dataclass(frozen=True)
class StatusChange(Change[None]):
    """A rollout's new status, which counts only if ``owner`` still runs that attempt."""

    rollout_id: str
    owner: str
    attempt: int
    status: RolloutStatus
    at: float

    @classmethod
    async def apply(cls, connection: AsyncConnection, changes: Sequence[Self]) -> Sequence[None]:
        """Set the last status of each rollout, and log every one on the way there."""
        last = {change.rollout_id: change for change in changes}
        await connection.execute(
            update(rollouts)
            .where(
                rollouts.c.id == bindparam("at_id"),
                rollouts.c.owner == bindparam("at_owner"),
                rollouts.c.attempt == bindparam("at_attempt"),
                rollouts.c.finished_at.is_(None),
            )
            .values(status=bindparam("new_status"), changed_at=bindparam("new_time")),
            [
                {
                    "at_id": change.rollout_id,
                    "at_owner": change.owner,
                    "at_attempt": change.attempt,
                    "new_status": change.status.value,
                    "new_time": change.at,
                }
                for change in last.values()
            ],
        )
        await add_events(
            connection, [(change.rollout_id, change.status.value, change.at) for change in changes]
        )
        return [None] * len(changes)


@dataclass(frozen=True)
class LeaseRenewal(Change[None]):
    """Somebody polls for a rollout that another server runs: its lease lasts from now."""

    rollout_id: str
    lease_sec: float

    @classmethod
    async def apply(cls, connection: AsyncConnection, changes: Sequence[Self]) -> Sequence[None]:
        """Set when each lease ends, by the database's clock."""
        last = {change.rollout_id: change.lease_sec for change in changes}
        for rollout_id, lease_sec in last.items():
            await connection.execute(
                update(rollouts)
                .where(rollouts.c.id == rollout_id, rollouts.c.finished_at.is_(None))
                .values(lease_until=database_now(connection.dialect.name) + lease_sec)
            )
        return [None] * len(changes)


@dataclass(frozen=True)
class Cancellation(Change[str | None]):
    """Somebody wants a rollout cancelled that another server may be running.

    Gives back the disposition that stands: of the first who asked, or ``None``
    when there is no such rollout in flight.
    """

    rollout_id: str
    disposition: str
    at: float

    @classmethod
    async def apply(
        cls, connection: AsyncConnection, changes: Sequence[Self]
    ) -> Sequence[str | None]:
        """Note the first disposition of each rollout, and tell the server that runs it."""
        standing: list[str | None] = []
        for change in changes:
            unfinished = (rollouts.c.id == change.rollout_id, rollouts.c.finished_at.is_(None))
            asked = await connection.execute(
                update(rollouts)
                .where(*unfinished, rollouts.c.disposition.is_(None))
                .values(disposition=change.disposition)
            )
            if asked.rowcount:
                await add_events(connection, [(change.rollout_id, CANCEL_ASKED, change.at)])
            found = await connection.execute(select(rollouts.c.disposition).where(*unfinished))
            standing.append(found.scalar_one_or_none())
        return standing
