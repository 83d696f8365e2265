"""Records as they go on the wire, and where a page of them ends."""

import re
from datetime import UTC, datetime

from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.store.rows import Record
from osmosis_ai.rollout.server.wire import clean_text
from osmosis_ai.rollout.types.protocol import RolloutList, RolloutRecord

_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_CURSOR = re.compile(r"before-([1-9][0-9]{0,17})")


def describe(record: Record) -> RolloutRecord:
    """A record for status and lists."""
    ending = record.ending or {}
    message = ending.get("err_message")
    return RolloutRecord(
        rollout_id=record.id,
        status=record.status,
        protocol=record.protocol,
        reward=ending.get("reward"),
        err_message=None if message is None else clean_text(message),
        err_category=ending.get("err_category"),
        attempts=record.attempt + 1,
        server_id=record.owner,
        admitted_at=_time(record.admitted_at),
        changed_at=_time(record.changed_at),
        finished_at=None if record.finished_at is None else _time(record.finished_at),
        served_until=None if record.expires_at is None else _time(record.expires_at),
    )


def page(records: list[Record], limit: int) -> RolloutList:
    """A page of at most ``limit`` of ``limit + 1`` records."""
    more = len(records) > limit
    shown = records[:limit]
    return RolloutList(
        rollouts=[describe(record) for record in shown],
        next_cursor=f"before-{shown[-1].number}" if more else None,
    )


def read_cursor(cursor: str | None) -> int | None:
    """The number before which a page begins.

    Raises:
        RefusedError: 422, it is not one of ours.
    """
    if cursor is None:
        return None
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise RefusedError(422, "cursor is not one that a page of this list named")
    return int(found.group(1))


def read_time(text: str | None) -> float | None:
    """Seconds since the epoch of an RFC 3339 time.

    Raises:
        RefusedError: 422, it is none.
    """
    if text is None:
        return None
    try:
        if not _RFC_3339.fullmatch(text):
            raise ValueError("no time with an offset")
        return datetime.fromisoformat(text.upper()).timestamp()
    except (ValueError, OverflowError) as exc:
        problem = f"since must be a time such as 2026-01-31T12:00:00Z, got {text!r}"
        raise RefusedError(422, problem) from exc


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
