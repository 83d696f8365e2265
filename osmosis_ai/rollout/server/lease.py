"""The polling lease: a rollout that nobody polls for any more is not worth running."""

import asyncio
from collections.abc import Callable


class Lease:
    """Runs out ``seconds`` after it was made or last renewed, and calls ``on_lapse``.

    One timer that is set again when it fires early: renewing costs nothing.
    """

    def __init__(self, seconds: float, on_lapse: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._until = self._loop.time() + seconds
        self._on_lapse = on_lapse
        self._timer: asyncio.TimerHandle | None = self._loop.call_at(self._until, self._look)

    @property
    def lapsed(self) -> bool:
        """Whether it ran out; true from the deadline on, however late the loop notices."""
        return self._loop.time() >= self._until

    def renew(self) -> None:
        """Count from now again; a lapsed lease stays lapsed."""
        if not self.lapsed:
            self._until = self._loop.time() + self._seconds

    def revive(self, seconds: float) -> None:
        """Let it last from now: it was renewed where this process could not see it."""
        self._until = self._loop.time() + seconds
        if self._timer is None:
            self._timer = self._loop.call_at(self._until, self._look)

    def stop(self) -> None:
        """Let it never run out any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self.lapsed:
            self._on_lapse()
        else:
            self._timer = self._loop.call_at(self._until, self._look)
