"""What a run opens, and who closes it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar

_open: ContextVar[AsyncExitStack | None] = ContextVar("closed_after_run", default=None)


@asynccontextmanager
async def closing_after_run() -> AsyncIterator[None]:
    """Close, when the block ends, what the code inside handed to ``close_after_run``.

    Last opened, first closed, whether the block failed or not.
    """
    async with AsyncExitStack() as stack:
        token = _open.set(stack)
        try:
            yield
        finally:
            _open.reset(token)


def close_after_run(close: Callable[[], Awaitable[object]]) -> None:
    """Have ``close`` awaited at the end of the current run; outside one nothing happens."""
    stack = _open.get()
    if stack is not None:
        stack.push_async_callback(close)
