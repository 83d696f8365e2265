"""Ends calls in flight from outside, and waits until they are over."""

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import anyio

from osmosis_ai.gateway.errors import rollout_closed

_log = logging.getLogger(__name__)

_CLOSE_GRACE_SEC = 5.0


class Lifetime:
    """How long calls may live: an endpoint's, or that of a socket within an endpoint's.

    Closing cancels scopes of our own instead of aiohttp's tasks, because httpx gives up
    its connection cleanly only when a cancellation respects shields.
    """

    def __init__(self, rollout_id: str, parent: Self | None = None) -> None:
        self._rollout_id = rollout_id
        self._parent = parent
        self._closed = False
        self._scopes: set[anyio.CancelScope] = set()
        self._handling = 0
        self._quiet = anyio.Event()

    @property
    def closed(self) -> bool:
        """Whether this lifetime or one around it is over."""
        return self._closed or (self._parent is not None and self._parent.closed)

    @contextmanager
    def handling(self) -> Iterator[None]:
        """Closing waits for the block, so that a call's record is there afterwards."""
        chain = self._chain()
        for lifetime in chain:
            lifetime._handling += 1
        try:
            yield
        finally:
            for lifetime in chain:
                lifetime._handling -= 1
                if not lifetime._handling:
                    lifetime._quiet.set()

    @contextmanager
    def until_closed(self, seconds: float | None = None) -> Iterator[None]:
        """Run the block until this lifetime closes, at most for some seconds.

        Code after the block means that one of the two happened.

        Raises:
            ApiError: 410, it is closed already.
        """
        if self.closed:
            raise rollout_closed(self._rollout_id)
        chain = self._chain()
        deadline = math.inf if seconds is None else anyio.current_time() + seconds
        with anyio.CancelScope(deadline=deadline) as scope:
            for lifetime in chain:
                lifetime._scopes.add(scope)
            try:
                yield
            finally:
                for lifetime in chain:
                    lifetime._scopes.discard(scope)

    async def close(self) -> None:
        """Refuse new calls, end those in flight, and wait until they are recorded."""
        self._closed = True
        for scope in list(self._scopes):
            scope.cancel()
        with anyio.move_on_after(_CLOSE_GRACE_SEC, shield=True) as grace:
            while self._handling:
                self._quiet = anyio.Event()
                await self._quiet.wait()
        if grace.cancelled_caught:
            _log.warning("%d call(s) of %r outlived it", self._handling, self._rollout_id)

    def _chain(self) -> list[Self]:
        return [self, *(self._parent._chain() if self._parent else [])]
