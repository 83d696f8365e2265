"""Ends the server on a signal: rollouts first, while polls are still served, then the process."""

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def ending_gracefully(on_signal: Callable[[Callable[[], None]], None]) -> Iterator[None]:
    """Call ``on_signal`` for each signal, with what ends the web server.

    Uvicorn stops listening at once on a signal, forgets the application's
    shutdown on a second one, and then dies by it. Here it goes on until it is
    told to end, and the process exits with 0. Other web servers, and threads
    that get no signals, are left as they are.
    """
    server = _uvicorn()
    if server is None:
        yield
        return
    loop = asyncio.get_running_loop()

    def end() -> None:
        server.should_exit = True

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(on_signal, end)

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _uvicorn() -> Any:
    """The uvicorn server whose handlers are installed, if it is one that runs this code."""
    if threading.current_thread() is not threading.main_thread():
        return None
    owners = {getattr(signal.getsignal(number), "__self__", None) for number in _SIGNALS}
    owner = owners.pop() if len(owners) == 1 else None
    return owner if hasattr(owner, "should_exit") and hasattr(owner, "force_exit") else None
