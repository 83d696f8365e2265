"""Admits rollouts to the store, and takes admissions back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import and_, delete
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from osmosis_ai.rollout.server.store.change import Change
from osmosis_ai.rollout.server.store.events import add_events
from osmosis_ai.rollout.server.store.records import Protocol, has_pending_callback
from osmosis_ai.rollout.server.store.tables import rollouts
from osmosis_ai.rollout.types.status import RolloutStatus


@dataclass(frozen=True)
class NewRollout(Change[int | None]):
    """A rollout to admit; gives back its number, or ``None`` when the id is taken.

    ``request`` is its JSON without credentials, ``sealed`` what the store's keys
    made of those; ``lease_sec`` is ``None`` when nobody polls for it.
    """

    id: str
    protocol: Protocol
    fingerprint: bytes
    nonce: bytes
    digest: bytes
    request: bytes
    sealed: bytes | None
    rerun: bool
    owner: str
    admitted_at: float
    lease_sec: float | None

    @classmethod
    async def apply(
        cls, connection: AsyncConnection, changes: Sequence[Self]
    ) -> Sequence[int | None]:
        """Insert the rollouts whose ids are free, or were and are not kept any more."""
        forgotten = and_(
            rollouts.c.id.in_([new.id for new in changes]),
            rollouts.c.expires_at <= changes[0].admitted_at,
            ~has_pending_callback(rollouts.c.number),
        )
        await connection.execute(delete(rollouts).where(forgotten))
        kind = postgresql if connection.dialect.name == "postgresql" else sqlite
        adding = (
            kind.insert(rollouts)
            .on_conflict_do_nothing(index_elements=[rollouts.c.id])
            .returning(rollouts.c.id, rollouts.c.number, rollouts.c.nonce)
        )
        added = (await connection.execute(adding, [new._row() for new in changes])).all()
        # Two of one batch may have the same id: the nonce tells which of them is in.
        numbers = {(row.id, row.nonce): row.number for row in added}
        admitted = [new for new in changes if (new.id, new.nonce) in numbers]
        await add_events(
            connection,
            [(new.id, RolloutStatus.QUEUED.value, new.admitted_at) for new in admitted],
        )
        return [numbers.get((new.id, new.nonce)) for new in changes]

    def _row(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "protocol": self.protocol,
            "fingerprint": self.fingerprint,
            "nonce": self.nonce,
            "digest": self.digest,
            "request": self.request,
            "sealed": self.sealed,
            "rerun": self.rerun,
            "attempt": 0,
            "owner": self.owner,
            "status": RolloutStatus.QUEUED.value,
            "admitted_at": self.admitted_at,
            "changed_at": self.admitted_at,
            "lease_until": None if self.lease_sec is None else self.admitted_at + self.lease_sec,
        }


@dataclass(frozen=True)
class Withdrawal(Change[None]):
    """Takes back the admission with that number, which nobody was told of."""

    number: int

    @classmethod
    async def apply(cls, connection: AsyncConnection, changes: Sequence[Self]) -> Sequence[None]:
        """Delete the rollouts."""
        numbers = [change.number for change in changes]
        await connection.execute(delete(rollouts).where(rollouts.c.number.in_(numbers)))
        return [None] * len(changes)
