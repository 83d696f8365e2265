"""Callbacks in the store, until they are delivered or given up."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import Select, and_, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from osmosis_ai.common.urls import url_secrets
from osmosis_ai.rollout.server.callbacks.auth import ControllerAuth
from osmosis_ai.rollout.server.callbacks.entries import Callback, CallbackKind, Pending
from osmosis_ai.rollout.server.store.change import Change
from osmosis_ai.rollout.server.store.keys import CredentialsLostError, StoreKeys
from osmosis_ai.rollout.server.store.tables import callbacks, rollouts
from osmosis_ai.rollout.server.store.writer import Writer

_PENDING = "pending"
_KEY = "controller_api_key"
_URL = {
    CallbackKind.COMPLETION: "completion_callback_url",
    CallbackKind.GRADER: "grader_callback_url",
}
"""As in a request, whose sealed credentials a callback may be left with."""


@dataclass(frozen=True)
class NewCallback(Change[bool]):
    """A callback to keep; gives back ``False`` if its rollout is gone or had one of its kind.

    ``sealed`` is what the store's keys made of the trainer's key.
    """

    rollout_id: str
    kind: str
    url: str
    body: bytes
    sealed: bytes | None
    created_at: float

    @classmethod
    async def apply(cls, connection: AsyncConnection, changes: Sequence[Self]) -> Sequence[bool]:
        """Insert the callbacks that are new."""
        known = await connection.execute(
            select(rollouts.c.id, rollouts.c.number).where(
                rollouts.c.id.in_([new.rollout_id for new in changes])
            )
        )
        numbers = {row.id: row.number for row in known}
        rows = [new._row(numbers[new.rollout_id]) for new in changes if new.rollout_id in numbers]
        if not rows:
            return [False] * len(changes)
        kind = postgresql if connection.dialect.name == "postgresql" else sqlite
        adding = (
            kind.insert(callbacks)
            .on_conflict_do_nothing(index_elements=[callbacks.c.rollout, callbacks.c.kind])
            .returning(callbacks.c.rollout, callbacks.c.kind)
        )
        added = {(row.rollout, row.kind) for row in await connection.execute(adding, rows)}
        return [(numbers.get(new.rollout_id), new.kind) in added for new in changes]

    def _row(self, rollout_number: int) -> dict[str, Any]:
        return {
            "rollout": rollout_number,
            "kind": self.kind,
            "state": _PENDING,
            "url": self.url,
            "body": self.body,
            "sealed": self.sealed,
            "created_at": self.created_at,
            "attempts": 0,
            "next_attempt_at": 0.0,
        }


@dataclass(frozen=True)
class CallbackUpdate(Change[None]):
    """New values for columns of a callback."""

    rollout_id: str
    kind: str
    values: dict[str, Any]

    @classmethod
    async def apply(cls, connection: AsyncConnection, changes: Sequence[Self]) -> Sequence[None]:
        """Set the values."""
        for change in changes:
            number = select(rollouts.c.number).where(rollouts.c.id == change.rollout_id)
            await connection.execute(
                update(callbacks)
                .where(
                    callbacks.c.rollout == number.scalar_subquery(),
                    callbacks.c.kind == change.kind,
                )
                .values(**change.values)
            )
        return [None] * len(changes)


class StoredCallbacks:
    """The ``CallbackStore`` of one server: what it has to deliver is what its rollouts left."""

    def __init__(
        self, database: AsyncEngine, writer: Writer, keys: StoreKeys, server_id: str
    ) -> None:
        self._database = database
        self._writer = writer
        self._keys = keys
        self._server_id = server_id
        self._unsealed: dict[tuple[str, str], tuple[str, ControllerAuth]] = {}

    def prepared(self, callback: Callback) -> NewCallback:
        """What to store for a callback. What cannot be sealed stays in memory."""
        key, url = callback.auth.api_key, url_secrets(callback.url)
        credentials = {} if key is None else {_KEY: key}
        if url.secrets:
            credentials[_URL[callback.kind]] = callback.url
        if credentials and not self._keys.seals:
            self._unsealed[callback.rollout_id, callback.kind.value] = callback.url, callback.auth
        return NewCallback(
            callback.rollout_id,
            callback.kind.value,
            url.shown,
            callback.body,
            self._keys.seal(credentials),
            callback.created_at,
        )

    async def add(self, callback: Callback) -> bool:
        """Keep a new callback, unless its rollout had one of its kind."""
        return await self._writer.submit(self.prepared(callback))

    async def pending(self) -> Sequence[Pending]:
        """The callbacks that this server has to deliver."""
        async with self._database.connect() as connection:
            rows = (await connection.execute(self._mine())).all()
        return [
            Pending(
                row.id,
                CallbackKind(row.kind),
                row.url,
                row.created_at,
                row.attempts,
                row.next_attempt_at,
            )
            for row in rows
        ]

    async def load(self, rollout_id: str, kind: CallbackKind) -> Callback | None:
        """The whole callback, while it is pending and this server's."""
        wanted = self._mine().where(rollouts.c.id == rollout_id, callbacks.c.kind == kind.value)
        query = wanted.add_columns(callbacks.c.body, callbacks.c.sealed)
        async with self._database.connect() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            return None
        url, auth, lost = row.url, ControllerAuth(), None
        if unsealed := self._unsealed.get((rollout_id, kind.value)):
            url, auth = unsealed
        else:
            try:
                credentials = self._keys.unseal(row.sealed)
            except CredentialsLostError as exc:
                lost = str(exc)
            else:
                url, auth = credentials.get(_URL[kind], url), ControllerAuth(credentials.get(_KEY))
        return Callback(
            row.id,
            kind,
            url,
            row.body,
            auth,
            row.created_at,
            row.attempts,
            row.next_attempt_at,
            lost_credential=lost,
        )

    async def record_attempt(
        self,
        rollout_id: str,
        kind: CallbackKind,
        *,
        attempts: int,
        next_attempt_at: float,
        problem: str,
    ) -> None:
        """Note an attempt that did not work."""
        values = {
            "attempts": attempts,
            "next_attempt_at": next_attempt_at,
            "problem": _text(problem),
        }
        await self._writer.submit(CallbackUpdate(rollout_id, kind.value, values))

    async def delivered(self, rollout_id: str, kind: CallbackKind) -> None:
        """Note that the trainer has it."""
        await self._end(rollout_id, kind, {"state": "delivered"})

    async def failed(self, rollout_id: str, kind: CallbackKind, problem: str) -> None:
        """Note that it is given up."""
        await self._end(rollout_id, kind, {"state": "failed", "problem": _text(problem)})

    async def _end(self, rollout_id: str, kind: CallbackKind, values: dict[str, Any]) -> None:
        self._unsealed.pop((rollout_id, kind.value), None)
        ended = {**values, "body": None, "sealed": None}
        await self._writer.submit(CallbackUpdate(rollout_id, kind.value, ended))

    def _mine(self) -> Select[Any]:
        return (
            select(
                rollouts.c.id,
                callbacks.c.kind,
                callbacks.c.url,
                callbacks.c.created_at,
                callbacks.c.attempts,
                callbacks.c.next_attempt_at,
            )
            .join(rollouts, rollouts.c.number == callbacks.c.rollout)
            .where(and_(callbacks.c.state == _PENDING, rollouts.c.owner == self._server_id))
        )


def _text(problem: str) -> bytes:
    return json.dumps(problem).encode()
