"""Changes to rollouts, each for many at once, and what is read of them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, and_, bindparam, delete, exists, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from osmosis_ai.rollout.server.store.engine import database_now
from osmosis_ai.rollout.server.store.rows import CANCEL_ASKED, NewRollout, Record
from osmosis_ai.rollout.server.store.tables import callbacks, events, rollouts
from osmosis_ai.rollout.server.store.writer import Change
from osmosis_ai.rollout.types.status import RolloutStatus

_RECORD = [rollouts.c[name] for name in Record.__dataclass_fields__]


@dataclass(frozen=True)
class Moved:
    """A rollout's new status, while it runs."""

    rollout_id: str
    owner: str
    attempt: int
    status: RolloutStatus
    at: float


@dataclass(frozen=True)
class CancelAsked:
    """Somebody wants a rollout cancelled that another server may be running."""

    rollout_id: str
    disposition: str
    at: float


def read_record(row: Row[Any]) -> Record:
    """A row of ``rollouts`` as a record."""
    fields = dict(row._mapping)
    fields["status"] = RolloutStatus(fields["status"])
    fields["ending"] = None if fields["ending"] is None else json.loads(fields["ending"])
    return Record(**{name: fields[name] for name in Record.__dataclass_fields__})


def select_records() -> Select[Any]:
    """The columns of a record."""
    return select(*_RECORD)


def is_pending(number: Any) -> Any:
    """Whether a callback of the rollout ``number`` has yet to be delivered."""
    return exists().where(callbacks.c.rollout == number, callbacks.c.state == "pending")


async def _admit(connection: AsyncConnection, items: Sequence[NewRollout]) -> Sequence[int | None]:
    """The number of each admitted rollout; ``None`` where the id is taken."""
    ids = [item.id for item in items]
    gone = and_(
        rollouts.c.id.in_(ids),
        rollouts.c.expires_at <= items[0].admitted_at,
        ~is_pending(rollouts.c.number),
    )
    await connection.execute(delete(rollouts).where(gone))
    kind = postgresql if connection.dialect.name == "postgresql" else sqlite
    adding = (
        kind.insert(rollouts)
        .on_conflict_do_nothing(index_elements=[rollouts.c.id])
        .returning(rollouts.c.id, rollouts.c.number, rollouts.c.nonce)
    )
    added = (await connection.execute(adding, [_admitted(item) for item in items])).all()
    # Two of one batch may have the same id: the nonce tells which of them is in.
    numbers = {(row.id, row.nonce): row.number for row in added}
    found = [numbers.get((item.id, item.nonce)) for item in items]
    await add_events(
        connection,
        [
            (item.id, RolloutStatus.QUEUED.value, item.admitted_at)
            for item, number in zip(items, found, strict=True)
            if number is not None
        ],
    )
    return found


def _admitted(item: NewRollout) -> dict[str, Any]:
    return {
        "id": item.id,
        "protocol": item.protocol,
        "fingerprint": item.fingerprint,
        "nonce": item.nonce,
        "digest": item.digest,
        "request": item.request,
        "sealed": item.sealed,
        "rerun": item.rerun,
        "attempt": 0,
        "owner": item.owner,
        "status": RolloutStatus.QUEUED.value,
        "admitted_at": item.admitted_at,
        "changed_at": item.admitted_at,
        "lease_until": None if item.lease_sec is None else item.admitted_at + item.lease_sec,
    }


async def _move(connection: AsyncConnection, items: Sequence[Moved]) -> Sequence[None]:
    last = {item.rollout_id: item for item in items}
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
                "at_id": item.rollout_id,
                "at_owner": item.owner,
                "at_attempt": item.attempt,
                "new_status": item.status.value,
                "new_time": item.at,
            }
            for item in last.values()
        ],
    )
    await add_events(connection, [(item.rollout_id, item.status.value, item.at) for item in items])
    return [None] * len(items)


async def _withdraw(
    connection: AsyncConnection, items: Sequence[tuple[str, int]]
) -> Sequence[None]:
    """Take back admissions that were not answered."""
    await connection.execute(
        delete(rollouts).where(rollouts.c.number.in_([number for _, number in items]))
    )
    return [None] * len(items)


async def _ask_cancel(
    connection: AsyncConnection, items: Sequence[CancelAsked]
) -> Sequence[str | None]:
    """The disposition that stands, of unfinished rollouts."""
    answers: list[str | None] = []
    for item in items:
        unfinished = (rollouts.c.id == item.rollout_id, rollouts.c.finished_at.is_(None))
        asked = await connection.execute(
            update(rollouts)
            .where(*unfinished, rollouts.c.disposition.is_(None))
            .values(disposition=item.disposition)
        )
        if asked.rowcount:
            await add_events(connection, [(item.rollout_id, CANCEL_ASKED, item.at)])
        found = await connection.execute(select(rollouts.c.disposition).where(*unfinished))
        answers.append(found.scalar_one_or_none())
    return answers


async def _renew(connection: AsyncConnection, items: Sequence[tuple[str, float]]) -> Sequence[None]:
    for rollout_id, seconds in dict(items).items():
        await connection.execute(
            update(rollouts)
            .where(rollouts.c.id == rollout_id, rollouts.c.finished_at.is_(None))
            .values(lease_until=database_now(connection.dialect.name) + seconds)
        )
    return [None] * len(items)


async def add_events(
    connection: AsyncConnection, changes: Iterable[tuple[str, str, float]]
) -> None:
    """Append to what the servers and the callers of a store follow."""
    rows = [{"rollout_id": i, "status": status, "at": at} for i, status, at in changes]
    if rows:
        await connection.execute(insert(events), rows)


def begins_with(prefix: str) -> Any:
    """Whether a rollout's id begins with ``prefix``."""
    return and_(rollouts.c.id >= prefix, func.substr(rollouts.c.id, 1, len(prefix)) == prefix)


ADMIT = Change(0, _admit)
MOVE = Change(1, _move)
RENEW = Change(2, _renew)
ASK_CANCEL = Change(3, _ask_cancel)
WITHDRAW = Change(9, _withdraw)
