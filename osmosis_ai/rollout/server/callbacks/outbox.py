"""Delivers callbacks until the trainer has them, over restarts of either side."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from osmosis_ai.rollout.server.callbacks.attempts import Attempts, ClosingError
from osmosis_ai.rollout.server.callbacks.delivery import STORE_PAUSE_SEC, Delivery, ReportHook
from osmosis_ai.rollout.server.callbacks.entries import Callback, Pending
from osmosis_ai.rollout.server.callbacks.limits import OutboxLimits
from osmosis_ai.rollout.server.callbacks.queue import CallbackQueue, Posted, QueuedCallback
from osmosis_ai.rollout.server.callbacks.sleep import WakeableSleep
from osmosis_ai.rollout.server.callbacks.store import CallbackStore

__all__ = ["CallbackOutbox", "CallbackStore", "Posted", "ReportHook"]

logger = logging.getLogger(__name__)


class CallbackOutbox:
    """Posts callbacks, kept in a store until each is delivered or given up.

    A rollout's completion callback comes to its end before its grader callback
    is tried. What the first round of attempts does not deliver is tried again
    with growing pauses, and sooner when its receiver takes another callback.

    Args:
        store: keeps the callbacks.
        limits: attempts, pauses, concurrency.
        on_report: awaited with the rollout's id, the kind and the report when a
            trainer's answer carries one. What it raises is logged.
    """

    def __init__(
        self,
        store: CallbackStore,
        limits: OutboxLimits | None = None,
        on_report: ReportHook | None = None,
    ) -> None:
        self._store = store
        self._limits = limits or OutboxLimits()
        self._attempts = Attempts(store, self._limits)
        self._pauses = WakeableSleep()
        self._delivery = Delivery(store, self._limits, self._attempts, self._pauses, on_report)
        self._queues: dict[str, CallbackQueue] = {}
        self._group: asyncio.TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Deliver within the block, beginning with what the store holds; once per object.

        Leaving it begins no new attempt and waits for those under way, so that
        what they did is known at the next start. Cancelling does not wait.
        """
        async with self._attempts.open(), asyncio.TaskGroup() as self._group:
            try:
                await self.resume()
                yield
            finally:
                self._attempts.closing = True
                self._pauses.wake_all()

    async def resume(self) -> None:
        """Take up what the store holds and nobody here delivers yet: of another life or server."""
        for entry in await self._store.pending():
            self._enqueue(entry)

    async def post(self, callback: Callback) -> Posted:
        """Keep a new callback, then do as ``deliver``."""
        if not await self._store.add(callback):
            return Posted("duplicate", f"the rollout had a {callback.kind} callback before")
        return await self.deliver(callback.pending)

    async def deliver(self, entry: Pending) -> Posted:
        """Deliver what is in the store already, and wait for its first round at most.

        Returns ``deferred`` when the round did not bring it there, or did not
        end within ``post_sec``; the delivery goes on without the caller.
        """
        queued = self._enqueue(entry)
        await asyncio.wait([queued.posted], timeout=self._limits.post_sec)
        if queued.posted.done():
            return queued.posted.result()
        return Posted("deferred", f"not delivered within {self._limits.post_sec:g} s")

    @property
    def waiting(self) -> int:
        """How many callbacks are on their way."""
        return sum(len(queue.waiting) for queue in self._queues.values())

    def _enqueue(self, entry: Pending) -> QueuedCallback:
        callback = QueuedCallback(entry)
        queue = self._queues.get(entry.rollout_id)
        if queue is not None:
            return queue.add(callback)
        if self._group is None or self._attempts.closing:
            callback.tell(Posted("deferred", "the server is shutting down"))
            return callback
        queue = self._queues[entry.rollout_id] = CallbackQueue()
        queue.add(callback)
        self._group.create_task(self._serve(queue, entry.rollout_id))
        return callback

    async def _serve(self, queue: CallbackQueue, rollout_id: str) -> None:
        try:
            while (head := queue.head) is not None and not self._attempts.closing:
                try:
                    await self._advance(queue, head)
                except ClosingError:
                    break
                except Exception:
                    logger.exception("Rollout %s: its callbacks must wait", rollout_id)
                    queue.deferred("the store failed")
                    await self._pauses.sleep(STORE_PAUSE_SEC)
        finally:
            queue.deferred("the server is shutting down")
            del self._queues[rollout_id]

    async def _advance(self, queue: CallbackQueue, head: QueuedCallback) -> None:
        if head.entry.next_attempt_at > time.time():
            queue.deferred("it waits for its next attempt")
            await self._delivery.wait(head.entry)
        if self._attempts.closing:
            raise ClosingError
        reached = await self._delivery.advance(head.entry)
        if isinstance(reached, Posted):
            queue.done(reached)
        else:
            head.entry = reached
            queue.deferred("its receiver did not take it")
