"""Runs rollouts in tasks of its own, and publishes how each ends, once."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from osmosis_ai.gateway.gateway import Gateway
from osmosis_ai.rollout.backend.base import ExecutionBackend
from osmosis_ai.rollout.server.callbacks import CallbackKind, CallbackOutbox
from osmosis_ai.rollout.server.execute import execute
from osmosis_ai.rollout.server.lease import Lease
from osmosis_ai.rollout.server.results import (
    CANCELLED,
    CRASHED,
    LEASE_EXPIRED,
    completion_callback,
    last_callbacks,
)
from osmosis_ai.rollout.server.run import Admitted, Run
from osmosis_ai.rollout.server.settings import Settings
from osmosis_ai.rollout.server.store import Store, StoreClosedError, StoreUnavailableError
from osmosis_ai.rollout.server.store.callbacks import CallbackRows
from osmosis_ai.rollout.server.store.rollouts import Moved
from osmosis_ai.rollout.server.store.rows import Ending
from osmosis_ai.rollout.server.tasks import Tasks, to_the_end
from osmosis_ai.rollout.server.wire import encode_result, wire_reward
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.protocol import RolloutInitRequest
from osmosis_ai.rollout.types.status import RolloutStatus
from osmosis_ai.telemetry.current import PERSISTENCE
from osmosis_ai.telemetry.telemetry import Telemetry

logger = logging.getLogger(__name__)

STORE_PAUSE_SEC = 0.5
"""Between attempts to write what must be written."""

_CANCELLED = ("cancelled_queued", "cancelled_running")


class Runner:
    """The rollouts of one server, while it runs."""

    def __init__(
        self,
        server: str,
        settings: Settings,
        backend: ExecutionBackend,
        gateway: Gateway,
        store: Store,
        rows: CallbackRows,
        outbox: CallbackOutbox,
        telemetry: Telemetry,
    ) -> None:
        self._server = server
        self._settings = settings
        self._backend = backend
        self._gateway = gateway
        self._store = store
        self._rows = rows
        self._outbox = outbox
        self._telemetry = telemetry
        self._runs: dict[str, Run] = {}
        self.tasks = Tasks()
        self.jobs = Tasks()
        self.giving_up = False

    def find(self, rollout_id: str) -> Run | None:
        """The rollout, if it runs here."""
        return self._runs.get(rollout_id)

    @property
    def runs(self) -> list[Run]:
        """Everything that runs here."""
        return list(self._runs.values())

    def start(
        self, request: RolloutInitRequest, admitted: Admitted, posted: frozenset[str] = frozenset()
    ) -> Run:
        """Begin to run a rollout; the backend has counted it when this returns."""
        run = Run(request, admitted, self._moved, posted=set(posted))
        if request.protocol == "polling":
            run.lease = Lease(self._settings.windows.lease, lambda: self._lapsed(run))
        self._runs[run.id] = run
        run.task = self.tasks.start(self._serve(run), name=run.id)
        if run.task.done():
            self._runs.pop(run.id, None)
        return run

    async def expire(self, run: Run) -> None:
        """End a rollout that nobody polls for, unless somebody did at another server."""
        if run.lease is None or not run.lapsed or await self._renewed_elsewhere(run):
            return
        await self._publish(run, LEASE_EXPIRED, ended=False)
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
        self.giving_up = True
        for run in self.runs:
            run.lost = True
        for tasks in (self.tasks, self.jobs):
            tasks.cancel()
            await tasks.wait(None)

    async def publish_stuck(self) -> None:
        """End what ignores its cancellation, so that its result is not lost with this process."""
        for run in self.runs:
            if not run.handed_over:
                await self._publish(run, CANCELLED, ended=True)

    async def _serve(self, run: Run) -> None:
        try:
            with self._telemetry.rollout(run.id) as observed:
                result = await self._result(run)
                if run.lapsed and not await to_the_end(self._renewed_elsewhere(run)):
                    result, run.workflow = LEASE_EXPIRED, None
                if run.handed_over or run.lost:
                    observed.handed_over()
                else:
                    observed.outcome(result)
                    observed.begin(PERSISTENCE)
                    await to_the_end(self._end(run, result))
        finally:
            if run.lease is not None:
                run.lease.stop()
            run.watch.close()
            self._runs.pop(run.id, None)

    async def _result(self, run: Run) -> ExecutionResult:
        hook = self._post_completion(run) if run.request.protocol == "callback" else None
        try:
            outcome = await execute(run, self._backend, self._gateway, self._settings.root, hook)
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
            await self._retrying(lambda: self._rows.add(callback))
            run.posted.add(CallbackKind.COMPLETION)
            posted = await self._outbox.deliver(callback.pending)
            run.report = posted.report or run.report

        return post

    async def _publish(self, run: Run, result: ExecutionResult, *, ended: bool) -> None:
        if run.ending is None:
            run.early = not ended
            run.ending = self.jobs.start(self._write(run, result, ended=ended))
        await asyncio.shield(run.ending)

    async def _write(self, run: Run, result: ExecutionResult, *, ended: bool) -> None:
        now = time.time()
        workflow = run.workflow if ended else None
        owed = last_callbacks(run.request, result, workflow, run.posted)
        ending = Ending(
            run.id,
            self._server,
            run.admitted.attempt,
            encode_result(run.id, result),
            result,
            wire_reward(result),
            now,
            now + self._settings.windows.retention if ended else None,
            tuple(self._rows.prepared(callback) for callback in owed),
        )
        won = await self._retrying(lambda: self._store.finish(ending))
        if won is None:
            logger.critical("Rollout %s: its result could not be stored", run.id)
        elif won:
            run.watch.publish(result.status, ending.result)
            for callback in owed:
                self.jobs.start(self._deliver(run, callback.pending))
        else:
            await self._adopt(run)

    async def _end(self, run: Run, result: ExecutionResult) -> None:
        await self._publish(run, result, ended=True)
        if run.early:  # its retention begins only now, or its id would be free too soon
            expires_at = time.time() + self._settings.windows.retention
            await self._retrying(lambda: self._store.release(run.id, expires_at))

    async def _deliver(self, run: Run, pending: Any) -> None:
        posted = await self._outbox.deliver(pending)
        if posted.report is not None and run.save is not None:
            await run.save(posted.report)

    async def _adopt(self, run: Run) -> None:
        """Take the result that is in the store, be it of another server or of a lost answer."""
        record = await self._retrying(lambda: self._store.find(run.id))
        result = await self._retrying(lambda: self._store.result(run.id))
        if record is None or record.owner != self._server:
            logger.warning("Rollout %s: another server has it; its result here is dropped", run.id)
            run.lost = True
        if record is not None and record.finished and result is not None:
            run.watch.publish(record.status, result)
            await self._outbox.resume()

    async def _retrying[T](self, write: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Do what the store must not miss; ``None`` when the server ends without it."""
        while True:
            try:
                return await write()
            except StoreClosedError:
                return None
            except StoreUnavailableError as exc:
                if self.giving_up:
                    return None
                logger.warning("%s; trying again", exc)
                await asyncio.sleep(STORE_PAUSE_SEC)

    async def _renewed_elsewhere(self, run: Run) -> bool:
        if run.lease is None or not self._store.shared:
            return False
        left = await self._retrying(lambda: self._store.lease_left(run.id)) or 0.0
        if left <= 0:
            return False
        run.lease.revive(left)
        return True

    def _lapsed(self, run: Run) -> None:
        self.jobs.start(self.expire(run))

    def _moved(self, run: Run, status: RolloutStatus) -> None:
        moved = Moved(run.id, self._server, run.admitted.attempt, status, time.time())
        self._store.moved(moved)

    def _ended_in_backend(self, rollout_id: str) -> bool:
        seen = (self._backend.rollout_status(rollout_id) or {}).get("status")
        return any(status.is_terminal and status == seen for status in RolloutStatus)
