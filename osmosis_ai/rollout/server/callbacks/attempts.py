"""Attempts of one callback: few at once to one receiver, its body in memory only meanwhile."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

import tenacity
from anyio import CapacityLimiter

from osmosis_ai.rollout.server.callbacks.entries import Pending
from osmosis_ai.rollout.server.callbacks.limits import OutboxLimits
from osmosis_ai.rollout.server.callbacks.sender import (
    CallbackSender,
    RefusedCallbackError,
    UndeliveredError,
)
from osmosis_ai.rollout.server.callbacks.store import CallbackStore
from osmosis_ai.rollout.server.callbacks.urls import origin
from osmosis_ai.rollout.trajectory.report import TrajectoryReport


class ClosingError(Exception):
    """The outbox is closing; the store holds what is left to do."""


class CallbackGoneError(Exception):
    """The store does not hold the callback as pending any more."""


class Attempts:
    """Tries callbacks within ``open()``.

    Attributes:
        closing: set to begin no further attempt.
    """

    def __init__(self, store: CallbackStore, limits: OutboxLimits) -> None:
        self.closing = False
        self._store = store
        self._limits = limits
        self._sender = CallbackSender(limits)
        self._all = CapacityLimiter(limits.in_all)
        # Weak, so that an origin is forgotten with its last callback.
        self._origins: WeakValueDictionary[str, CapacityLimiter] = WeakValueDictionary()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep connections while the block runs."""
        async with self._sender.open():
            yield

    async def several(
        self, entry: Pending, sleep: Callable[[float], Awaitable[None]]
    ) -> TrajectoryReport | None:
        """Try as often as a round allows; raises as ``once``, after the last attempt."""
        limits = self._limits
        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(limits.round_attempts),
            wait=tenacity.wait_exponential(
                multiplier=limits.first_pause_sec, max=limits.round_pause_sec
            ),
            retry=tenacity.retry_if_exception_type(UndeliveredError),
            sleep=sleep,
            reraise=True,
        )
        return await retrying(self.once, entry)

    async def once(self, entry: Pending) -> TrajectoryReport | None:
        """Try once, when the receiver's turn comes; returns the report in its answer.

        Raises:
            RefusedCallbackError: another attempt cannot work.
            UndeliveredError: it did not work this time.
            CallbackGoneError: there is nothing to deliver.
            ClosingError: nothing was tried.
        """
        where = origin(entry.url)
        its_own = self._origins.setdefault(where, CapacityLimiter(self._limits.per_origin))
        async with its_own, self._all:
            if self.closing:
                raise ClosingError
            callback = await self._store.load(entry.rollout_id, entry.kind)
            if callback is None:
                raise CallbackGoneError
            if callback.lost_credential is not None:
                raise RefusedCallbackError(callback.lost_credential)
            return await self._sender.send(callback)
