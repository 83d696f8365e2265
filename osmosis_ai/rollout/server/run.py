"""One rollout that this server runs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

from osmosis_ai.rollout.context import RolloutProgress
from osmosis_ai.rollout.server.lease import Lease
from osmosis_ai.rollout.server.store.records import Record
from osmosis_ai.rollout.server.watch import Watch
from osmosis_ai.rollout.trajectory.report import TrajectoryReport
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.protocol import RolloutInitRequest
from osmosis_ai.rollout.types.status import RolloutStatus

IN_BACKEND = (RolloutStatus.RUNNING, RolloutStatus.GRADING)

type Save = Callable[[TrajectoryReport | None], Awaitable[None]]


@dataclass(frozen=True)
class RolloutIdentity:
    """What tells a rollout, and this attempt to run it, from others; see ``Record``."""

    number: int
    fingerprint: bytes
    nonce: bytes
    digest: bytes
    attempt: int = 0

    @classmethod
    def of(cls, record: Record) -> Self:
        """The identity of a rollout that is in the store."""
        return cls(record.number, record.fingerprint, record.nonce, record.digest, record.attempt)


@dataclass
class Run:
    """A rollout between its admission and the end of its task.

    Attributes:
        progress: where the backend reports the status.
        watch: what callers see.
        posted: the kinds of callbacks that are in the store.
        workflow: how the workflow's phase ended, once it has.
        save: writes the trajectory again, with a trainer's report.
        disposition: how a cancellation was answered, for when it is asked again.
        handed_over: it is stopped here for another server, or a later one, to run.
        lost: another server took it over.
        early: its result was there before its task had ended.
    """

    request: RolloutInitRequest
    identity: RolloutIdentity
    observer: Callable[["Run", RolloutStatus], None]
    lease: Lease | None = None
    posted: set[str] = field(default_factory=set)
    workflow: ExecutionResult | None = None
    report: TrajectoryReport | None = None
    save: Save | None = None
    task: asyncio.Task[None] | None = None
    publication: asyncio.Task[None] | None = None
    disposition: str | None = None
    handed_over: bool = False
    lost: bool = False
    early: bool = False

    def __post_init__(self) -> None:
        self.watch = Watch(self.id)
        self.progress = RolloutProgress(observer=self._moved)

    @property
    def id(self) -> str:
        """The rollout's id."""
        return self.request.rollout_id

    @property
    def lapsed(self) -> bool:
        """Whether nobody polled for too long."""
        return self.lease is not None and self.lease.lapsed

    def _moved(self, status: RolloutStatus) -> None:
        # An end counts once its result is stored, not when the backend says so.
        if status in IN_BACKEND and not self.watch.finished:
            self.watch.move(status)
            self.observer(self, status)
