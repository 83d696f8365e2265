"""Which rollout the lines are about that the calling task logs."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class LogContext:
    """What every line of a rollout carries; the ids of the trace are hexadecimal."""

    rollout_id: str
    trace_id: str | None = None
    span_id: str | None = None


_current: ContextVar[LogContext | None] = ContextVar("log_context", default=None)


def log_context() -> LogContext | None:
    """Return what the lines of the calling task carry; ``None`` outside a rollout."""
    return _current.get()


@contextmanager
def logging_about(context: LogContext) -> Iterator[None]:
    """Have lines logged within the block carry ``context``."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def about_rollout(rollout_id: str) -> Iterator[None]:
    """Have lines logged within the block carry the rollout's id."""
    known = _current.get()
    if known is not None and known.rollout_id == rollout_id:
        yield
        return
    with logging_about(LogContext(rollout_id)):
        yield
