"""Writing results: each once, with the callbacks that follow from it."""

from collections.abc import Sequence

from sqlalchemy import bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from osmosis_ai.rollout.server.store.callbacks import add_callbacks
from osmosis_ai.rollout.server.store.rollouts import add_events
from osmosis_ai.rollout.server.store.rows import Ending
from osmosis_ai.rollout.server.store.tables import rollouts
from osmosis_ai.rollout.server.store.writer import Change


async def _finish(connection: AsyncConnection, items: Sequence[Ending]) -> Sequence[bool]:
    """Whether each became the rollout's result. Writers follow one another: none comes between."""
    ids = [item.rollout_id for item in items]
    running = await connection.execute(
        select(rollouts.c.id, rollouts.c.owner, rollouts.c.attempt).where(
            rollouts.c.id.in_(ids), rollouts.c.finished_at.is_(None)
        )
    )
    open_ones = {(row.id, row.owner, row.attempt) for row in running}
    won: dict[int, Ending] = {}
    for place, item in enumerate(items):
        attempt = (item.rollout_id, item.owner, item.attempt)
        if attempt in open_ones:
            open_ones.discard(attempt)
            won[place] = item
    if won:
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
                ending=bindparam("new_ending"),
                expires_at=bindparam("new_expiry"),
                request=None,
                sealed=None,
            ),
            [
                {
                    "at_id": item.rollout_id,
                    "at_owner": item.owner,
                    "new_status": item.outcome.status.value,
                    "new_time": item.at,
                    "new_result": item.result,
                    "new_ending": item.summary,
                    "new_expiry": item.expires_at,
                }
                for item in won.values()
            ],
        )
        await add_callbacks(connection, [c for item in won.values() for c in item.callbacks])
        await add_events(
            connection,
            [(item.rollout_id, item.outcome.status.value, item.at) for item in won.values()],
        )
    return [place in won for place in range(len(items))]


async def _release(
    connection: AsyncConnection, items: Sequence[tuple[str, float]]
) -> Sequence[None]:
    """Begin the retention of results whose rollout has really stopped."""
    await connection.execute(
        update(rollouts)
        .where(rollouts.c.id == bindparam("at_id"), rollouts.c.expires_at.is_(None))
        .values(expires_at=bindparam("new_expiry")),
        [{"at_id": rollout_id, "new_expiry": expires_at} for rollout_id, expires_at in items],
    )
    return [None] * len(items)


FINISH: Change[Ending, bool] = Change(4, _finish)
RELEASE: Change[tuple[str, float], None] = Change(6, _release)
