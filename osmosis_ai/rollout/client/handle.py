"""One admitted rollout, as a trainer follows it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import aclosing
from typing import Any

from osmosis_ai.rollout.types.protocol import RolloutInitResponse, RolloutResultResponse
from osmosis_ai.rollout.types.status import RolloutStatus

logger = logging.getLogger(__name__)

_BEFORE_RUNNING = frozenset({RolloutStatus.QUEUED})
_BEFORE_GRADING = _BEFORE_RUNNING | {RolloutStatus.RUNNING}


class RolloutHandle:
    """Polls a rollout in the background, which keeps its lease, and tells what it learns.

    ``await handle`` gives the result, and ``async for result in handle`` every
    status change from admission on, the last one terminal. All waits raise what
    the polling raised (``RolloutProtocolError``, ``RolloutUnreachableError``),
    and ``asyncio.CancelledError`` after ``cancel``.

    Attributes:
        rollout_id: its id.
        admission: token and windows, to follow it from another process with
            ``RolloutClient.resume``; ``None`` on a server without leases.
    """

    def __init__(
        self,
        rollout_id: str,
        admission: RolloutInitResponse | None,
        follow: Callable[[], AsyncGenerator[RolloutResultResponse]],
    ) -> None:
        self.rollout_id = rollout_id
        self.admission = admission
        first = admission.status if admission else RolloutStatus.QUEUED
        self._changes = [RolloutResultResponse(rollout_id=rollout_id, status=first)]
        self._answered = False
        self._changed = asyncio.Event()
        self._error: Exception | None = None
        self._task = asyncio.create_task(self._run(follow), name=f"polls of {rollout_id}")
        self._task.add_done_callback(lambda _: self._wake())

    @property
    def status(self) -> RolloutStatus:
        """The last status that was seen."""
        return self._changes[-1].status

    @property
    def latest_result(self) -> RolloutResultResponse | None:
        """What polls told last, ``None`` before the first; the result if its status is terminal."""
        return self._changes[-1] if self._answered else None

    def done(self) -> bool:
        """Whether the polling has ended: with the result, an error, or by ``cancel``."""
        return self._task.done()

    def cancel(self) -> bool:
        """Stop following the rollout; ``False`` if it was over.

        The server is not told: the rollout ends when its lease runs out. To end
        it now, call ``RolloutClient.cancel_rollout``.
        """
        return self._task.cancel()

    def on_done(self, then: "Callable[[RolloutHandle], object]") -> None:
        """Call ``then`` with this handle when the polling has ended."""
        self._task.add_done_callback(lambda _: then(self))

    async def closed(self) -> None:
        """Stop following, and return when that is done."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def wait_for_running(self) -> RolloutStatus:
        """Wait until it runs, or is further; returns the status."""
        return await self._beyond(_BEFORE_RUNNING)

    async def wait_for_grading(self) -> RolloutStatus:
        """Wait until it is graded, or is further; returns the status."""
        return await self._beyond(_BEFORE_GRADING)

    async def wait_for_completion(self) -> RolloutResultResponse:
        """Wait for the result."""
        async for change in self:
            last = change
        return last

    def __await__(self) -> Generator[Any, None, RolloutResultResponse]:
        return self.wait_for_completion().__await__()

    async def __aiter__(self) -> AsyncIterator[RolloutResultResponse]:
        """Every status change so far and to come, beginning with the admission."""
        told = 0
        while True:
            for change in self._changes[told:]:
                told += 1
                yield change
            if self._changes[-1].status.is_terminal:
                return
            await self._news(told)

    async def _beyond(self, statuses: frozenset[RolloutStatus]) -> RolloutStatus:
        while self.status in statuses:
            await self._news(len(self._changes))
        return self.status

    async def _news(self, told: int) -> None:
        """Wait until there are more changes than ``told``."""
        while len(self._changes) <= told:
            if not self._task.done():
                await self._changed.wait()
            elif self._error is not None:
                raise self._error
            else:
                raise asyncio.CancelledError(f"rollout {self.rollout_id!r} is not followed now")

    async def _run(self, follow: Callable[[], AsyncGenerator[RolloutResultResponse]]) -> None:
        try:
            async with aclosing(follow()) as answers:
                async for answer in answers:
                    self._take(answer)
        except Exception as exc:
            # Waiters raise it; whoever never waits finds it here.
            logger.warning("Rollout %s is not followed any more: %s", self.rollout_id, exc)
            self._error = exc

    def _take(self, answer: RolloutResultResponse) -> None:
        self._answered = True
        if answer.status is self.status and not answer.status.is_terminal:
            return
        self._changes.append(answer)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
