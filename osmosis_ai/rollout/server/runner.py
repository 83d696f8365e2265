"""Runs the rollouts of one server, each in a task of its own."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from osmosis_ai.common.observer import PERSISTENCE
from osmosis_ai.rollout.server.callbacks import CallbackKind
from osmosis_ai.rollout.server.context import ServerContext
from osmosis_ai.rollout.server.execute import execute
from osmosis_ai.rollout.server.lease import Lease
from osmosis_ai.rollout.server.publisher import ResultPublisher
from osmosis_ai.rollout.server.results import (
    CANCELLED,
    CRASHED,
    LEASE_EXPIRED,
    completion_callback,
)
from osmosis_ai.rollout.server.run import RolloutIdentity, Run
from osmosis_ai.rollout.server.store.progress import StatusChange
from osmosis_ai.rollout.server.tasks import Tasks, to_the_end
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.protocol import RolloutInitRequest
from osmosis_ai.rollout.types.status import RolloutStatus

logger = logging.getLogger(__name__)

_CANCELLED = ("cancelled_queued", "cancelled_running")


class Runner:
    """Begins, cancels and ends the rollouts of one server."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._backend = context.backend
        self._store = context.store
        self._runs: dict[str, Run] = {}
        self._publisher = ResultPublisher(context)
        self._expiring = Tasks()
        self.tasks = Tasks()

    def find(self, rollout_id: str) -> Run | None:
        """The rollout, if it runs here."""
        return self._runs.get(rollout_id)

    @property
    def runs(self) -> list[Run]:
        """Everything that runs here."""
        return list(self._runs.values())

    def start(
        self,
        request: RolloutInitRequest,
        identity: RolloutIdentity,
        posted: frozenset[str] = frozenset(),
    ) -> Run:
        """Begin to run a rollout; the backend has counted it when this returns."""
        run = Run(request, identity, self._moved, posted=set(posted))
        if request.protocol == "polling":
            run.lease = Lease(self._context.settings.windows.lease, lambda: self._lapsed(run))
        self._runs[run.id] = run
        run.task = self.tasks.start(self._serve(run), name=run.id)
        if run.task.done():
            self._runs.pop(run.id, None)
        return run

    async def expire(self, run: Run) -> None:
        """End a rollout that nobody polls for, unless somebody did at another server."""
        if run.lease is None or not run.lapsed or await self._renewed_elsewhere(run):
            return
        await self._publisher.publish(run, LEASE_EXPIRED, stopped=False)
        if run.task is not None:
            run.task.cancel()

    async def cancel(self, run: Run) -> str:
        """Cancel a rollout that runs here; asked again, it answers the same."""
        if run.watch.finished:
            return "not_found"
        if run.disposition is None:
            answer = (await self._backend.cancel_rollouts(ids=[run.id])).get(run.id)
            if answer == "not_found" and self._ended_in_backend(run.id):
                return answer
            if answer not in _CANCELLED:
                queued = run.watch.status is RolloutStatus.QUEUED
                answer = "cancelled_queued" if queued else "cancelled_running"
                if run.task is not None:
                    run.task.cancel()
            run.disposition = answer
        return run.disposition

    async def hand_over(self, run: Run) -> None:
        """Stop a rollout here without an end, so that it is run again elsewhere or later."""
        run.handed_over = True
        await self.cancel(run)

    async def abandon(self) -> None:
        """Stop at once, without an end for what runs: the next start finds it interrupted."""
        self._publisher.give_up()
        for run in self.runs:
            run.lost = True
        for tasks in (self.tasks, self._expiring):
            tasks.cancel()
            await tasks.wait(None)
        await self._publisher.abandon()

    async def publish_stuck(self) -> None:
        """End what ignores its cancellation, so that its result is not lost with this process."""
        for run in self.runs:
            if not run.handed_over:
                await self._publisher.publish(run, CANCELLED, stopped=True)

    async def _serve(self, run: Run) -> None:
        try:
            with self._context.telemetry.rollout(run.id) as observed:
                result = await self._result(run)
                if run.lapsed and not await to_the_end(self._renewed_elsewhere(run)):
                    result, run.workflow = LEASE_EXPIRED, None
                if run.handed_over or run.lost:
                    observed.handed_over()
                else:
                    observed.outcome(result)
                    observed.begin(PERSISTENCE)
                    await to_the_end(self._publisher.end(run, result))
        finally:
            if run.lease is not None:
                run.lease.stop()
            run.watch.close()
            self._runs.pop(run.id, None)

    async def _result(self, run: Run) -> ExecutionResult:
        hook = self._post_completion(run) if run.request.protocol == "callback" else None
        try:
            outcome = await execute(
                run, self._backend, self._context.gateway, self._context.settings.root, hook
            )
        except asyncio.CancelledError:
            if run.task is not None:
                run.task.uncancel()
            return CANCELLED
        except Exception as exc:
            logger.error("Rollout %s: its task crashed", run.id, exc_info=exc)
            return CRASHED
        if outcome.result.status is not RolloutStatus.CANCELLED:
            run.workflow = outcome.workflow
        return outcome.result

    def _post_completion(self, run: Run) -> Callable[[ExecutionResult], Awaitable[None]]:
        async def post(workflow: ExecutionResult) -> None:
            callback = completion_callback(run.request, workflow)
            await self._publisher.until_stored(lambda: self._context.callbacks.add(callback))
            run.posted.add(CallbackKind.COMPLETION)
            posted = await self._context.outbox.deliver(callback.pending)
            run.report = posted.report or run.report

        return post

    async def _renewed_elsewhere(self, run: Run) -> bool:
        if run.lease is None or not self._store.shared:
            return False
        left = await self._publisher.until_stored(lambda: self._store.lease_left(run.id)) or 0.0
        if left <= 0:
            return False
        run.lease.revive(left)
        return True

    def _lapsed(self, run: Run) -> None:
        self._expiring.start(self.expire(run))

    def _moved(self, run: Run, status: RolloutStatus) -> None:
        attempt = run.identity.attempt
        self._store.move(
            StatusChange(run.id, self._context.server_id, attempt, status, time.time())
        )

    def _ended_in_backend(self, rollout_id: str) -> bool:
        seen = (self._backend.rollout_status(rollout_id) or {}).get("status")
        return any(status.is_terminal and status == seen for status in RolloutStatus)
