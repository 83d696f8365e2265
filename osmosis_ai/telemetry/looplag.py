"""How late the event loop runs its timers."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TICK_SEC = 0.05


@contextmanager
def watching_loop(report: Callable[[float], None]) -> Iterator[None]:
    """Report, every ``TICK_SEC``, by how many seconds the running loop was late."""
    loop = asyncio.get_running_loop()
    handle: asyncio.TimerHandle

    def tick(due: float) -> None:
        now = loop.time()
        report(max(now - due, 0.0))
        schedule(now)

    def schedule(now: float) -> None:
        nonlocal handle
        handle = loop.call_at(now + TICK_SEC, tick, now + TICK_SEC)

    schedule(loop.time())
    try:
        yield
    finally:
        handle.cancel()
