"""The callbacks of one rollout, in their order."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from osmosis_ai.rollout.server.callbacks.entries import CallbackKind, Pending
from osmosis_ai.rollout.trajectory.report import TrajectoryReport

_ORDER = (CallbackKind.COMPLETION, CallbackKind.GRADER)


@dataclass(frozen=True)
class Posted:
    """How far a callback came.

    Attributes:
        state: ``delivered``; ``failed`` for good; ``deferred``, to be tried
            again later; or ``duplicate``, because the rollout had one of its
            kind before, which stays.
        problem: what stood in the way.
        report: what the trainer's answer carried.
    """

    state: Literal["delivered", "failed", "deferred", "duplicate"]
    problem: str | None = None
    report: TrajectoryReport | None = None


@dataclass
class QueuedCallback:
    """A callback in its queue; ``posted`` is done when its caller need not wait any more."""

    entry: Pending
    posted: asyncio.Future[Posted] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def tell(self, posted: Posted) -> None:
        """Say how far it came; only the first word counts."""
        if not self.posted.done():
            self.posted.set_result(posted)


@dataclass
class CallbackQueue:
    """One rollout's callbacks: the completion goes before the grader's, whichever came first."""

    waiting: dict[CallbackKind, QueuedCallback] = field(default_factory=dict)
    _problem: str | None = None

    def add(self, callback: QueuedCallback) -> QueuedCallback:
        """Take a callback in, unless there is one of its kind; returns the one that stands."""
        if self._problem is not None:
            callback.tell(Posted("deferred", self._problem))
        return self.waiting.setdefault(callback.entry.kind, callback)

    @property
    def head(self) -> QueuedCallback | None:
        """The callback that is delivered next."""
        return next((self.waiting[kind] for kind in _ORDER if kind in self.waiting), None)

    def done(self, posted: Posted) -> None:
        """The head came to its end."""
        head = self.head
        assert head is not None
        del self.waiting[head.entry.kind]
        self._problem = None
        head.tell(posted)

    def deferred(self, problem: str) -> None:
        """The head will be tried again later, and what follows it must wait as long."""
        self._problem = problem
        for callback in self.waiting.values():
            callback.tell(Posted("deferred", problem))
