"""The polling lease: a rollout nobody asks for any more is not worth running."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Lease:
    """Runs out ``seconds`` after it was made or last renewed, and does not come back."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = asyncio.get_running_loop().time() + seconds
        self._timeout: asyncio.Timeout | None = None

    @property
    def lapsed(self) -> bool:
        """Whether it ran out; true from the deadline on, however late the loop notices."""
        fired = self._timeout is not None and self._timeout.expired()
        return fired or asyncio.get_running_loop().time() >= self._until

    def renew(self) -> None:
        """Count from now again; a lapsed lease stays lapsed."""
        if self.lapsed:
            return
        self._until = asyncio.get_running_loop().time() + self._seconds
        if self._timeout is not None:
            self._timeout.reschedule(self._until)

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[None]:
        """Cancel the block when the lease runs out.

        Raises:
            TimeoutError: it did. A block that swallows its cancellation raises
                nothing; look at ``lapsed`` after it.
        """
        try:
            async with asyncio.timeout_at(self._until) as self._timeout:
                yield
        finally:
            if self._timeout is not None and not self._timeout.expired():
                self._timeout = None
