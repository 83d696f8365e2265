"""One rollout in flight on a backend: what it is, what its caller heard, and its cancellation."""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from osmosis_ai.rollout.backend.base import ResultCallback
from osmosis_ai.rollout.context import RolloutContext, RolloutProgress
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionRequest, ExecutionResult
from osmosis_ai.rollout.types.status import RolloutStatus

logger = logging.getLogger(__name__)


class _Announcement:
    """A caller's callback, awaited at most once; what it raises is kept for the end."""

    def __init__(self, callback: ResultCallback | None) -> None:
        self._callback = callback
        self._made = False
        self.error: Exception | None = None

    async def make(self, result: ExecutionResult) -> None:
        if self._made or self._callback is None:
            return
        self._made = True
        try:
            await self._callback(result)
        except Exception as exc:
            logger.info("The callback for a result failed", exc_info=exc)
            self.error = exc


@dataclass(eq=False)
class LiveRollout:
    """One rollout in flight; ``LiveRollouts.admit`` makes it.

    Attributes:
        request: what was asked for.
        context: the rollout context that was active at its admission.
        task: the task that runs it.
        workflow: how the workflow's phase ended, as far as the backend has said.
        cancel_requested: somebody cancelled it through the backend.
        disposition: how that was answered, for when it is asked again.
        progress: where the status goes, and who follows it.
    """

    request: ExecutionRequest
    context: RolloutContext | None
    task: asyncio.Task[Any]
    on_workflow_complete: ResultCallback | None = None
    on_grader_complete: ResultCallback | None = None
    workflow: ExecutionResult | None = None
    cancel_requested: bool = False
    disposition: str = ""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    progress: RolloutProgress = field(default_factory=RolloutProgress)

    def __post_init__(self) -> None:
        self._cancels_before = self.task.cancelling()
        self._workflow_announced = _Announcement(self.on_workflow_complete)
        self._grader_announced = _Announcement(self.on_grader_complete)
        if self.context is not None and self.context.progress is not None:
            self.progress = self.context.progress
            self.progress.pushed = True

    @property
    def id(self) -> str:
        """The rollout's id."""
        return self.request.id

    @property
    def status(self) -> RolloutStatus:
        """Where the rollout is."""
        return self.progress.status

    @status.setter
    def status(self, status: RolloutStatus) -> None:
        self.progress.set_status(status)

    async def workflow_ended(self, result: ExecutionResult) -> None:
        """Remember how the workflow's phase ended, and tell the caller, once.

        A backend calls it between the phases. What the callback raises is
        raised to the caller of ``execute`` at the rollout's end, not here.

        Raises:
            asyncio.CancelledError: the rollout was cancelled meanwhile, even if user
                code swallowed that; then ``result`` counts for nothing.
        """
        await self.raise_if_cancelled()
        self.workflow = result
        await self._workflow_announced.make(result)

    async def announce(self, outcome: ExecutionOutcome) -> None:
        """Tell the caller of an end what it has not heard yet, the workflow's result first."""
        self.workflow = outcome.workflow
        await self._workflow_announced.make(outcome.workflow)
        if outcome.grader is not None:
            self.status = RolloutStatus.GRADING  # also where a refusal took no time
            await self._grader_announced.make(outcome.grader)

    async def raise_if_cancelled(self) -> None:
        """Pass while nobody cancelled the rollout or its task.

        Raises:
            asyncio.CancelledError: somebody did, and code in between went on regardless.
        """
        if self.cancel_requested or self.task.cancelling() > self._cancels_before:
            await asyncio.sleep(0)  # one that was asked for within this task arrives only here
            raise asyncio.CancelledError

    def take_cancellation(self) -> bool:
        """Take back the task's cancellation, once, if the rollout's is all that cancelled it."""
        return self.cancel_requested and self.task.uncancel() <= self._cancels_before

    def cancel(self) -> str:
        """Cancel it, once; returns the disposition."""
        if not self.cancel_requested:
            queued = self.status is RolloutStatus.QUEUED
            self.disposition = "cancelled_queued" if queued else "cancelled_running"
            self.cancel_requested = True
            self.task.cancel()
        return self.disposition

    def raise_callback_error(self) -> None:
        """Raise what a callback raised, the workflow's before the grader's."""
        error = self._workflow_announced.error or self._grader_announced.error
        if error is not None:
            raise error


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
