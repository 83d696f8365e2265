"""Publishes how each rollout ends, once."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from osmosis_ai.rollout.server.callbacks import Pending
from osmosis_ai.rollout.server.context import ServerContext
from osmosis_ai.rollout.server.results import last_callbacks
from osmosis_ai.rollout.server.run import Run
from osmosis_ai.rollout.server.store import StoreClosedError, StoreUnavailableError
from osmosis_ai.rollout.server.store.results import TerminalResult
from osmosis_ai.rollout.server.tasks import Tasks
from osmosis_ai.rollout.server.wire import encode_result, wire_reward
from osmosis_ai.rollout.types.execution import ExecutionResult

logger = logging.getLogger(__name__)

STORE_PAUSE_SEC = 0.5
"""Between attempts to write what must be written."""


class ResultPublisher:
    """Stores results, then shows them to who waits and posts the callbacks that follow."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._store = context.store
        self._jobs = Tasks()
        self._giving_up = False

    async def publish(self, run: Run, result: ExecutionResult, *, stopped: bool) -> None:
        """Publish how a rollout ends; its first result stays. ``stopped``: nothing of it runs."""
        if run.publication is None:
            run.early = not stopped
            run.publication = self._jobs.start(self._write(run, result, stopped=stopped))
        await asyncio.shield(run.publication)

    async def end(self, run: Run, result: ExecutionResult) -> None:
        """Publish the result of a rollout that has stopped, and begin its retention."""
        await self.publish(run, result, stopped=True)
        if run.early:  # its retention begins only now, or its id would be free too soon
            expires_at = time.time() + self._context.settings.windows.retention
            await self.until_stored(lambda: self._store.start_retention(run.id, expires_at))

    async def until_stored[T](self, write: Callable[[], Awaitable[T]]) -> T | None:
        """Do what the store must not miss; ``None`` when the server ends without it."""
        while True:
            try:
                return await write()
            except StoreClosedError:
                return None
            except StoreUnavailableError as exc:
                if self._giving_up:
                    return None
                logger.warning("%s; trying again", exc)
                await asyncio.sleep(STORE_PAUSE_SEC)

    def give_up(self) -> None:
        """Wait for the store no longer."""
        self._giving_up = True

    async def abandon(self) -> None:
        """Cancel what is under way, and wait for its end."""
        self._jobs.cancel()
        await self._jobs.wait(None)

    async def _write(self, run: Run, result: ExecutionResult, *, stopped: bool) -> None:
        now = time.time()
        workflow = run.workflow if stopped else None
        owed = last_callbacks(run.request, result, workflow, run.posted)
        terminal = TerminalResult(
            rollout_id=run.id,
            owner=self._context.server_id,
            attempt=run.identity.attempt,
            encoded=encode_result(run.id, result),
            outcome=result,
            reward=wire_reward(result),
            at=now,
            expires_at=now + self._context.settings.windows.retention if stopped else None,
            callbacks=tuple(self._context.callbacks.prepared(callback) for callback in owed),
        )
        won = await self.until_stored(lambda: self._store.finish(terminal))
        if won is None:
            logger.critical("Rollout %s: its result could not be stored", run.id)
        elif won:
            run.watch.publish(result.status, terminal.encoded)
            for callback in owed:
                self._jobs.start(self._deliver(run, callback.pending))
        else:
            await self._adopt(run)

    async def _deliver(self, run: Run, pending: Pending) -> None:
        posted = await self._context.outbox.deliver(pending)
        if posted.report is not None and run.save is not None:
            await run.save(posted.report)

    async def _adopt(self, run: Run) -> None:
        """Take the result that is in the store, be it of another server or of a lost answer."""
        record = await self.until_stored(lambda: self._store.find(run.id))
        result = await self.until_stored(lambda: self._store.result(run.id))
        if record is None or record.owner != self._context.server_id:
            logger.warning("Rollout %s: another server has it; its result here is dropped", run.id)
            run.lost = True
        if record is not None and record.finished and result is not None:
            run.watch.publish(record.status, result)
            await self._context.outbox.resume()
