"""The life of a rollout, the same on every backend: admit, run, announce, record, cancel."""

import asyncio
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, final

from osmosis_ai.common.observer import QUEUE, observer
from osmosis_ai.rollout.backend.base import ExecutionBackend, ResultCallback
from osmosis_ai.rollout.backend.gateway import BackendGateway
from osmosis_ai.rollout.backend.live import LiveRollout, cancelled_outcome
from osmosis_ai.rollout.backend.registry import LiveRollouts
from osmosis_ai.rollout.deadline import deadline_message
from osmosis_ai.rollout.errors import DeadlineExceededError
from osmosis_ai.rollout.execution import WORKFLOW_PHASE, failure
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionRequest


class LifecycleBackend(ExecutionBackend):
    """A backend whose subclass supplies the two phases, and nothing else of a rollout's life.

    Every rollout that is admitted ends in one of three ways:

    - It has an outcome. ``on_workflow_complete`` is awaited once, before the
      grader begins where there is grading; ``on_grader_complete`` once after it,
      if the outcome has a grader's result. The outcome is recorded.
    - Its task was cancelled from outside: ``CancelledError``, and nothing is announced.
    - The backend itself broke: the error is raised, and nothing is announced.

    A rollout cancelled through the backend has an outcome, ``cancelled``, even if
    user code swallows the cancellation. A callback that raises changes no outcome:
    the first error is raised by ``execute`` once all is done.
    """

    gateway: BackendGateway

    def __init__(self, gateway: BackendGateway) -> None:
        self.gateway = gateway
        self._live = LiveRollouts()

    @abstractmethod
    async def _run(self, rollout: LiveRollout) -> ExecutionOutcome:
        """Run both phases; await ``rollout.workflow_ended`` between them, set its ``status``."""

    @final
    async def execute(
        self,
        request: ExecutionRequest,
        on_workflow_complete: ResultCallback | None = None,
        on_grader_complete: ResultCallback | None = None,
    ) -> ExecutionOutcome:
        """Run and grade one rollout; see ``ExecutionBackend.execute``."""
        admitted = self._live.admit(request, on_workflow_complete, on_grader_complete)
        async with admitted as rollout:
            observer().begin(QUEUE)
            try:
                outcome = await self._end_of(rollout)
            finally:
                observer().end()
            self._live.record(rollout.id, outcome)
            rollout.raise_callback_error()
            return outcome

    async def _end_of(self, rollout: LiveRollout) -> ExecutionOutcome:
        """Run a rollout to its outcome, and announce that."""
        try:
            outcome = _late(rollout.request) or await self._run(rollout)
            await rollout.raise_if_cancelled()
            await rollout.announce(outcome)
            await rollout.raise_if_cancelled()
        except asyncio.CancelledError:
            if not rollout.take_cancellation():
                raise
            outcome = cancelled_outcome(rollout.workflow)
            await rollout.announce(outcome)
        return outcome

    def rollout_status(self, rollout_id: str) -> dict[str, Any] | None:
        """Return ``{status, reward, err_message}``; kept 15 minutes after the end."""
        return self._live.status(rollout_id)

    async def cancel_rollouts(
        self, ids: Iterable[str] | None = None, prefix: str | None = None, all: bool = False
    ) -> dict[str, str]:
        """Cancel by exactly one selector; see ``LiveRollouts.cancel``."""
        return await self._live.cancel(ids, prefix, all)

    async def shutdown(self) -> None:
        """Cancel what runs, wait for it, and refuse more."""
        await self._live.close()
        await self.gateway.aclose()


def _late(request: ExecutionRequest) -> ExecutionOutcome | None:
    """End a rollout whose agent's deadline has passed already; it waits for no slot."""
    timeout = request.agent_timeout_sec
    if timeout is None or timeout > 0:
        return None
    expired = DeadlineExceededError(deadline_message(WORKFLOW_PHASE, timeout))
    return ExecutionOutcome(workflow=failure(expired))
