"""Turns stored records into what answers show of them, page by page."""

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator

from osmosis_ai.common.texts import clean_text
from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.store.records import Record
from osmosis_ai.rollout.types.protocol import RolloutList, RolloutRecord

_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_CURSOR = re.compile(r"before-([1-9][0-9]{0,17})")


def _checked_time(text: object) -> object:
    """Refuse what pydantic takes for a time and RFC 3339 does not, such as a bare number."""
    if not (isinstance(text, str) and _RFC_3339.fullmatch(text)):
        raise ValueError("not a time such as 2026-01-31T12:00:00Z")
    return text


Time = Annotated[AwareDatetime, BeforeValidator(_checked_time)]
"""A time in a request, as RFC 3339 has it."""


def describe(record: Record) -> RolloutRecord:
    """A record for status and lists."""
    summary = record.summary or {}
    message = summary.get("err_message")
    return RolloutRecord(
        rollout_id=record.id,
        status=record.status,
        protocol=record.protocol,
        reward=summary.get("reward"),
        err_message=None if message is None else clean_text(message),
        err_category=summary.get("err_category"),
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


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
