"""Rollouts that run at other servers, as far as callers here wait for them."""

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from osmosis_ai.rollout.server.context import ServerContext
from osmosis_ai.rollout.server.store.events import CANCEL_ASKED, Event
from osmosis_ai.rollout.server.store.records import Record
from osmosis_ai.rollout.server.watch import Watch
from osmosis_ai.rollout.server.wire import encode_progress
from osmosis_ai.rollout.types.status import RolloutStatus


@dataclass
class _Followed:
    watch: Watch
    waiting: int = 0
    left_at: float = 0.0
    renewed_at: float = 0.0


class Remotes:
    """Follows the store's events for who waits here, and passes cancellations on.

    What a caller was told is remembered for the time of a lease.
    """

    def __init__(self, context: ServerContext, on_cancel: Callable[[str], Awaitable[None]]) -> None:
        self._store = context.store
        self._windows = context.settings.windows
        self._on_cancel = on_cancel
        self._followed: dict[str, _Followed] = {}
        self._closed = False

    async def poll(self, record: Record, seen: RolloutStatus | None = None) -> bytes:
        """Wait for a change, and let the server that runs the rollout know that somebody does."""
        if self._closed:
            return encode_progress(record.id, record.status)
        with self._following(record.id) as followed:
            if time.monotonic() - followed.renewed_at > self._windows.lease / 4:
                followed.renewed_at = time.monotonic()
                self._store.renew_lease(record.id, self._windows.lease)
            # Read again: it may have changed before it was followed.
            await self._look(record.id, followed.watch)
            return await followed.watch.change(self._windows.wait, seen)

    async def on_events(self, events: Sequence[Event]) -> None:
        """Move what is followed."""
        for event in events:
            if event.status == CANCEL_ASKED:
                await self._on_cancel(event.rollout_id)
                continue
            followed = self._followed.get(event.rollout_id)
            if followed is None:
                continue
            status = RolloutStatus(event.status)
            if status.is_terminal:
                await self._look(event.rollout_id, followed.watch)
            else:
                followed.watch.move(status)

    def close(self) -> None:
        """Answer everybody who waits, and let nobody wait any more."""
        self._closed = True
        for followed in self._followed.values():
            followed.watch.close()

    async def _look(self, rollout_id: str, watch: Watch) -> None:
        record = await self._store.find(rollout_id)
        if record is None:
            watch.close()
            return
        if not record.finished:
            watch.move(record.status)
            return
        result = await self._store.result(rollout_id)
        if result is None:
            watch.close()
        else:
            watch.publish(record.status, result)

    @contextmanager
    def _following(self, rollout_id: str) -> Iterator[_Followed]:
        self._forget()
        followed = self._followed.setdefault(rollout_id, _Followed(Watch(rollout_id)))
        followed.waiting += 1
        try:
            yield followed
        finally:
            followed.waiting -= 1
            followed.left_at = time.monotonic()
            if followed.watch.finished and not followed.waiting:
                self._followed.pop(rollout_id, None)

    def _forget(self) -> None:
        """Drop from the front what nobody asks for any more."""
        horizon = time.monotonic() - self._windows.lease
        for rollout_id, followed in list(self._followed.items())[:2]:
            if not followed.waiting and followed.left_at < horizon:
                del self._followed[rollout_id]
