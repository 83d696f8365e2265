"""How code that runs a rollout tells what happens, without knowing who listens."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from osmosis_ai.common.model_calls import CallRecord, Kind

QUEUE = "queue"
ENVIRONMENT = "environment"
AGENT = "agent"
GRADING_QUEUE = "grading_queue"
GRADING = "grading"
PERSISTENCE = "persistence"


@dataclass(frozen=True)
class ModelCall:
    """A finished model call.

    Attributes:
        kind: ``policy`` or ``judge``.
        provider: what answered, by the GenAI conventions: ``openai`` for any
            OpenAI-compatible server, else the provider's name.
        record: what the gateway keeps of it.
    """

    kind: Kind
    provider: str
    record: CallRecord


class RolloutObserver(Protocol):
    """Hears what happens in one rollout. None of it raises, blocks or waits."""

    def begin(self, phase: str) -> None:
        """A phase begins, and the one before it ends; a phase that goes on just does."""

    def end(self, error: str | None = None, *, seconds_ago: float = 0.0) -> None:
        """The phase ended; ``error`` is the kind of failure in one word."""

    def model_call(self, call: ModelCall) -> None:
        """A model call ended."""


class _Nobody:
    def begin(self, phase: str) -> None:
        pass

    def end(self, error: str | None = None, *, seconds_ago: float = 0.0) -> None:
        pass

    def model_call(self, call: ModelCall) -> None:
        pass


NOBODY: RolloutObserver = _Nobody()
_current: ContextVar[RolloutObserver] = ContextVar("rollout_observer", default=NOBODY)


def observer() -> RolloutObserver:
    """Return who observes the rollout that the calling task runs; outside one, ``NOBODY``."""
    return _current.get()


@contextmanager
def observed_by(listener: RolloutObserver) -> Iterator[None]:
    """Have what happens within the block told to ``listener``."""
    token = _current.set(listener)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Tell the observer of the calling task's rollout that the block is this phase of it."""
    listening = _current.get()
    listening.begin(name)
    try:
        yield
    except BaseException as exc:
        listening.end(type(exc).__name__)
        raise
    listening.end()
