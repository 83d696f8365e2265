"""Writes terminal results: each once, with the callbacks that follow from it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from sqlalchemy import bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from osmosis_ai.rollout.server.store.callbacks import NewCallback
from osmosis_ai.rollout.server.store.change import Change
from osmosis_ai.rollout.server.store.events import add_events
from osmosis_ai.rollout.server.store.tables import rollouts
from osmosis_ai.rollout.types.execution import ExecutionResult


@dataclass(frozen=True)
class TerminalResult(Change[bool]):
    """How a rollout ended; gives back whether this became its result.

    A rollout has one result, and only whoever still is ``owner`` of attempt
    ``attempt`` may give it. ``expires_at`` is ``None`` while something of the
    rollout still runs.
    """

    rollout_id: str
    owner: str
    attempt: int
    encoded: bytes
    outcome: ExecutionResult
    reward: float | None
    at: float
    expires_at: float | None
    callbacks: tuple[NewCallback, ...] = ()

    @property
    def summary(self) -> bytes:
        """What status and lists tell of it."""
        category = self.outcome.err_category
        return json.dumps(
            {
                "reward": self.reward,
                "err_message": self.outcome.err_message,
                "err_category": None if category is None else category.value,
            }
        ).encode()

    @classmethod
    async def apply(cls, connection: AsyncConnection, changes: Sequence[Self]) -> Sequence[bool]:
        """Write those that may be. Writers follow one another, so nobody comes in between."""
        running = await connection.execute(
            select(rollouts.c.id, rollouts.c.owner, rollouts.c.attempt).where(
                rollouts.c.id.in_([change.rollout_id for change in changes]),
                rollouts.c.finished_at.is_(None),
            )
        )
        unfinished = {(row.id, row.owner, row.attempt) for row in running}
        won: dict[int, Self] = {}
        for place, change in enumerate(changes):
            attempt = (change.rollout_id, change.owner, change.attempt)
            if attempt in unfinished:
                unfinished.discard(attempt)
                won[place] = change
        if won:
            await _write(connection, list(won.values()))
        return [place in won for place in range(len(changes))]


@dataclass(frozen=True)
class RetentionStart(Change[None]):
    """The retention of a result begins, now that its rollout has really stopped."""

    rollout_id: str
    expires_at: float

    @classmethod
    async def apply(cls, connection: AsyncConnection, changes: Sequence[Self]) -> Sequence[None]:
        """Set when results expire that have no such time yet."""
        await connection.execute(
            update(rollouts)
            .where(rollouts.c.id == bindparam("at_id"), rollouts.c.expires_at.is_(None))
            .values(expires_at=bindparam("new_expiry")),
            [{"at_id": change.rollout_id, "new_expiry": change.expires_at} for change in changes],
        )
        return [None] * len(changes)


async def _write(connection: AsyncConnection, results: Sequence[TerminalResult]) -> None:
    await connection.execute(
        update(rollouts)
        .where(
            rollouts.c.id == bindparam("at_id"),
            rollouts.c.owner == bindparam("at_owner"),
            rollouts.c.finished_at.is_(None),
        )
        .values(
            status=bindparam("new_status"),
            changed_at=bindparam("new_time"),
            finished_at=bindparam("new_time"),
            result=bindparam("new_result"),
            ending=bindparam("new_summary"),
            expires_at=bindparam("new_expiry"),
            request=None,
            sealed=None,
        ),
        [
            {
                "at_id": result.rollout_id,
                "at_owner": result.owner,
                "new_status": result.outcome.status.value,
                "new_time": result.at,
                "new_result": result.encoded,
                "new_summary": result.summary,
                "new_expiry": result.expires_at,
            }
            for result in results
        ],
    )
    callbacks = [callback for result in results for callback in result.callbacks]
    if callbacks:
        await NewCallback.apply(connection, callbacks)
    await add_events(
        connection,
        [(result.rollout_id, result.outcome.status.value, result.at) for result in results],
    )
