"""The rollouts that a backend holds: unique ids, status, cancellation."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from osmosis_ai.rollout.context import RolloutProgress, get_rollout_context
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionResult
from osmosis_ai.rollout.types.status import RolloutStatus

_RETENTION_SEC = 900.0


class DuplicateRolloutError(ValueError):
    """A rollout with the same id is in flight on this backend."""


class BackendClosedError(RuntimeError):
    """The backend was shut down and takes no more rollouts."""


@dataclass
class LiveRollout:
    """One rollout in flight; its status reaches whoever follows the ``progress``."""

    rollout_id: str
    task: asyncio.Task[Any]
    cancel_requested: bool = False
    disposition: str = ""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    progress: RolloutProgress = field(default_factory=RolloutProgress)

    @property
    def status(self) -> RolloutStatus:
        """Where the rollout is."""
        return self.progress.status

    @status.setter
    def status(self, status: RolloutStatus) -> None:
        self.progress.set_status(status)


class LiveRollouts:
    """Registry of rollouts in flight, and of how finished ones ended (15 minutes)."""

    def __init__(self) -> None:
        self._live: dict[str, LiveRollout] = {}
        self._finished: dict[str, tuple[float, dict[str, Any]]] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._live)

    def count(self, status: RolloutStatus) -> int:
        """How many rollouts in flight are at ``status``."""
        return sum(rollout.status is status for rollout in self._live.values())

    @asynccontextmanager
    async def admit(self, rollout_id: str) -> AsyncIterator[LiveRollout]:
        """Hold ``rollout_id`` while the calling task runs it.

        The status is that of the active rollout context's progress, if it has one.

        Raises:
            DuplicateRolloutError: the id is in flight.
            BackendClosedError: ``close()`` was called.
        """
        if self._closed:
            raise BackendClosedError(f"Rollout {rollout_id!r} refused: the backend was shut down")
        if rollout_id in self._live:
            raise DuplicateRolloutError(
                f"Rollout id {rollout_id!r} is already in flight; wait for it to end, cancel it, "
                "or send another id"
            )
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a rollout must run in an asyncio task")
        rollout = LiveRollout(rollout_id, task)
        context = get_rollout_context()
        if context is not None and context.progress is not None:
            rollout.progress = context.progress
            rollout.progress.pushed = True
        self._live[rollout_id] = rollout
        try:
            yield rollout
        finally:
            del self._live[rollout_id]
            rollout.done.set()

    def record(self, rollout_id: str, outcome: ExecutionOutcome) -> None:
        """Remember how a rollout ended."""
        result = outcome.result
        reward = None if result.sample is None else result.sample.reward
        now = time.monotonic()
        for known, (at, _) in list(self._finished.items()):
            if now - at < _RETENTION_SEC:
                break
            del self._finished[known]
        self._finished.pop(rollout_id, None)
        self._finished[rollout_id] = (
            now,
            {"status": result.status, "reward": reward, "err_message": result.err_message},
        )

    def status(self, rollout_id: str) -> dict[str, Any] | None:
        """Return ``{status, reward, err_message}`` of a live or recently finished rollout."""
        live = self._live.get(rollout_id)
        if live is not None:
            return {"status": live.status, "reward": None, "err_message": None}
        finished = self._finished.get(rollout_id)
        if finished is None or time.monotonic() - finished[0] >= _RETENTION_SEC:
            return None
        return dict(finished[1])

    async def cancel(
        self, ids: Iterable[str] | None = None, prefix: str | None = None, all: bool = False
    ) -> dict[str, str]:
        """Cancel by exactly one selector; returns ``{id: disposition}``.

        Dispositions: ``cancelled_queued``, ``cancelled_running``, ``not_found``.
        Asking again for one that is still ending returns the same answer.

        Raises:
            ValueError: none or several selectors were given.
        """
        if sum([ids is not None, prefix is not None, all]) != 1:
            raise ValueError("give exactly one of 'ids', 'prefix' and 'all'")
        chosen = (
            list(ids)
            if ids is not None
            else [known for known in self._live if all or known.startswith(prefix or "")]
        )
        return {rollout_id: self._cancel_one(rollout_id) for rollout_id in chosen}

    def _cancel_one(self, rollout_id: str) -> str:
        rollout = self._live.get(rollout_id)
        if rollout is None:
            return "not_found"
        if not rollout.cancel_requested:
            queued = rollout.status is RolloutStatus.QUEUED
            rollout.disposition = "cancelled_queued" if queued else "cancelled_running"
            rollout.cancel_requested = True
            rollout.task.cancel()
        return rollout.disposition

    async def close(self) -> None:
        """Refuse new rollouts, cancel those in flight and wait until they ended."""
        self._closed = True
        pending = list(self._live.values())
        for rollout in pending:
            self._cancel_one(rollout.rollout_id)
        for rollout in pending:
            await rollout.done.wait()


def cancelled_outcome(workflow: ExecutionResult | None = None) -> ExecutionOutcome:
    """The outcome of a rollout that somebody cancelled; a workflow that succeeded is kept."""
    cancelled = ExecutionResult(
        status=RolloutStatus.CANCELLED, err_message="The rollout was cancelled"
    )
    if workflow is None or workflow.status is not RolloutStatus.SUCCESS:
        return ExecutionOutcome(workflow=cancelled)
    return ExecutionOutcome(
        workflow=workflow, grader=cancelled.model_copy(update={"sample": workflow.sample})
    )
