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
class Turn:
    """A callback in its lane; ``posted`` is done when its caller need not wait any more."""

    entry: Pending
    posted: asyncio.Future[Posted] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def tell(self, posted: Posted) -> None:
        """Say how far it came; only the first word counts."""
        if not self.posted.done():
            self.posted.set_result(posted)


@dataclass
class Lane:
    """Turns of one rollout: the completion callback goes before the grader's, whatever comes in."""

    turns: dict[CallbackKind, Turn] = field(default_factory=dict)
    _problem: str | None = None

    def add(self, turn: Turn) -> Turn:
        """Take a turn in, unless there is one of its kind; returns the one that stands."""
        if self._problem is not None:
            turn.tell(Posted("deferred", self._problem))
        return self.turns.setdefault(turn.entry.kind, turn)

    @property
    def head(self) -> Turn | None:
        """Whose turn it is."""
        return next((self.turns[kind] for kind in _ORDER if kind in self.turns), None)

    def done(self, posted: Posted) -> None:
        """The head came to its end."""
        head = self.head
        assert head is not None
        del self.turns[head.entry.kind]
        self._problem = None
        head.tell(posted)

    def deferred(self, problem: str) -> None:
        """The head will be tried again later, and who follows it must wait as long."""
        self._problem = problem
        for turn in self.turns.values():
            turn.tell(Posted("deferred", problem))
