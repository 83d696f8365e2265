"""A rollout as those who wait for its result see it."""

import asyncio

from osmosis_ai.rollout.server.wakeup import Wakeup
from osmosis_ai.rollout.server.wire import encode_progress
from osmosis_ai.rollout.types.status import RolloutStatus


class Watch:
    """Where a rollout is, and the end of it; many may wait at once.

    ``reported`` is what callers were told last: a poll waits until the status
    is another.
    """

    def __init__(self, rollout_id: str, status: RolloutStatus = RolloutStatus.QUEUED) -> None:
        self.rollout_id = rollout_id
        self.status = status
        self.reported = RolloutStatus.QUEUED
        self._result: bytes | None = None
        self._closed = False
        self._changed = Wakeup()

    @property
    def finished(self) -> bool:
        """Whether there is a result, which will not change any more."""
        return self._result is not None

    @property
    def body(self) -> bytes:
        """The answer to a poll, encoded."""
        return self._result or encode_progress(self.rollout_id, self.status)

    def move(self, status: RolloutStatus) -> None:
        """Note a status on the way; nothing follows the end."""
        if status is not self.status and not self.finished:
            self.status = status
            self._changed.wake()

    def publish(self, status: RolloutStatus, result: bytes) -> None:
        """End it; the first result stays."""
        if not self.finished:
            self.status, self._result = status, result
            self._changed.wake()

    def close(self) -> None:
        """Answer who waits: this server will see no more of it."""
        self._closed = True
        self._changed.wake()

    async def change(self, timeout_sec: float, seen: RolloutStatus | None = None) -> bytes:
        """Wait until the status is another than ``seen``, and return the answer.

        Who does not say what it has seen waits for another than the reported one.
        """
        try:
            async with asyncio.timeout(timeout_sec):
                while not (self.finished or self._closed) and self.status is (
                    seen or self.reported
                ):
                    await self._changed.next.wait()
        except TimeoutError:
            pass
        self.reported = self.status
        return self.body
