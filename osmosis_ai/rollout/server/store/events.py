"""The log of status changes, which servers and callers follow."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from osmosis_ai.rollout.server.store.tables import events

CANCEL_ASKED = "cancel_asked"
"""An event that is no status: a server asks the one that runs the rollout to cancel it."""


@dataclass(frozen=True)
class Event:
    """A change of a rollout's status; ``seq`` grows in the order of commits."""

    seq: int
    rollout_id: str
    status: str
    at: float


async def add_events(
    connection: AsyncConnection, changes: Iterable[tuple[str, str, float]]
) -> None:
    """Append changes to the log: each a rollout's id, its status, and when."""
    rows = [{"rollout_id": i, "status": status, "at": at} for i, status, at in changes]
    if rows:
        await connection.execute(insert(events), rows)
