"""Wakes everybody who waits for something that happens again and again."""

import asyncio


class Wakeup:
    """Wakes all who wait now; who begins to wait later is woken the next time."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    @property
    def next(self) -> asyncio.Event:
        """What is set the next time. Take it before looking at what may change."""
        return self._next

    def wake(self) -> None:
        """Wake all who wait now."""
        now, self._next = self._next, asyncio.Event()
        now.set()


async def within(event: asyncio.Event, timeout_sec: float) -> bool:
    """Wait for an event; ``False`` when it does not come in time."""
    try:
        async with asyncio.timeout(timeout_sec):
            return await event.wait()
    except TimeoutError:
        return False
