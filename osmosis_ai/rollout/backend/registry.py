"""The rollouts that a backend holds: unique ids, status, cancellation, and how they ended."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from osmosis_ai.rollout.backend.base import ResultCallback
from osmosis_ai.rollout.backend.live import LiveRollout
from osmosis_ai.rollout.context import get_rollout_context
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionRequest
from osmosis_ai.rollout.types.status import RolloutStatus

_RETENTION_SEC = 900.0


class DuplicateRolloutError(ValueError):
    """A rollout with the same id is in flight on this backend."""


class BackendClosedError(RuntimeError):
    """The backend was shut down and takes no more rollouts."""


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
    async def admit(
        self,
        request: ExecutionRequest,
        on_workflow_complete: ResultCallback | None = None,
        on_grader_complete: ResultCallback | None = None,
    ) -> AsyncIterator[LiveRollout]:
        """Hold a rollout while the calling task runs it, in the rollout context active now.

        Raises:
            DuplicateRolloutError: the id is in flight.
            BackendClosedError: ``close()`` was called.
        """
        if self._closed:
            raise BackendClosedError(f"Rollout {request.id!r} refused: the backend was shut down")
        if request.id in self._live:
            raise DuplicateRolloutError(
                f"Rollout id {request.id!r} is already in flight; wait for it to end, cancel it, "
                "or send another id"
            )
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a rollout must run in an asyncio task")
        rollout = LiveRollout(
            request, get_rollout_context(), task, on_workflow_complete, on_grader_complete
        )
        self._live[request.id] = rollout
        try:
            yield rollout
        finally:
            del self._live[request.id]
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
        live = {rollout_id: self._live.get(rollout_id) for rollout_id in chosen}
        return {
            known: rollout.cancel() if rollout else "not_found" for known, rollout in live.items()
        }

    async def close(self) -> None:
        """Refuse new rollouts, cancel those in flight and wait until they ended."""
        self._closed = True
        pending = list(self._live.values())
        for rollout in pending:
            rollout.cancel()
        for rollout in pending:
            await rollout.done.wait()
