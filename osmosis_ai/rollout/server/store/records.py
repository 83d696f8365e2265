"""Rollouts as they are read from the store, without request and result."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Row, Select, and_, exists, func, select

from osmosis_ai.rollout.server.store.tables import callbacks, rollouts
from osmosis_ai.rollout.types.status import RolloutStatus

type Protocol = Literal["polling", "callback"]


@dataclass(frozen=True)
class Record:
    """A rollout as the store knows it.

    Attributes:
        number: grows with every admission.
        attempt: how often it was taken over from a server that ended.
        disposition: how a cancellation was answered.
        summary: ``reward``, ``err_message`` and ``err_category``, once it has a result.
        expires_at: from then on the result is not served and the id is free.
    """

    number: int
    id: str
    protocol: Protocol
    fingerprint: bytes
    nonce: bytes
    digest: bytes
    rerun: bool
    attempt: int
    owner: str
    status: RolloutStatus
    admitted_at: float
    changed_at: float
    finished_at: float | None
    disposition: str | None
    summary: dict[str, Any] | None
    expires_at: float | None

    @property
    def finished(self) -> bool:
        """Whether there is a result."""
        return self.finished_at is not None


_FIELDS = tuple(Record.__dataclass_fields__)
_COLUMNS: Sequence[Any] = [
    rollouts.c.ending.label(name) if name == "summary" else rollouts.c[name] for name in _FIELDS
]


def select_records() -> Select[Any]:
    """A query for the columns of records."""
    return select(*_COLUMNS)


def read_record(row: Row[Any]) -> Record:
    """The record in a row that ``select_records`` found."""
    fields = {name: row._mapping[name] for name in _FIELDS}
    fields["status"] = RolloutStatus(fields["status"])
    fields["summary"] = None if fields["summary"] is None else json.loads(fields["summary"])
    return Record(**fields)


def begins_with(prefix: str) -> Any:
    """Whether a rollout's id begins with ``prefix``."""
    return and_(rollouts.c.id >= prefix, func.substr(rollouts.c.id, 1, len(prefix)) == prefix)


def has_pending_callback(number: Any) -> Any:
    """Whether a callback of the rollout ``number`` has yet to be delivered."""
    return exists().where(callbacks.c.rollout == number, callbacks.c.state == "pending")
