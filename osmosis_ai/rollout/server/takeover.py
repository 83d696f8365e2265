"""What becomes of rollouts whose server was stopped or killed."""

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from osmosis_ai.rollout.server.context import ServerContext
from osmosis_ai.rollout.server.results import CANCELLED, interrupted, last_callbacks
from osmosis_ai.rollout.server.run import RolloutIdentity
from osmosis_ai.rollout.server.runner import Runner
from osmosis_ai.rollout.server.store import CredentialsLostError
from osmosis_ai.rollout.server.store.progress import StatusChange
from osmosis_ai.rollout.server.store.results import TerminalResult
from osmosis_ai.rollout.server.store.servers import Claimed
from osmosis_ai.rollout.server.stored_request import restore
from osmosis_ai.rollout.server.wire import encode_result
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.protocol import RolloutInitRequest
from osmosis_ai.rollout.types.status import RolloutStatus

logger = logging.getLogger(__name__)

MAX_RERUNS = 3
"""A rollout that ends its server each time must not end every server in turn."""


class Takeover:
    """Ends or runs again what one server has claimed from others."""

    def __init__(self, context: ServerContext, runner: Runner) -> None:
        self._context = context
        self._server_id = context.server_id
        self._store = context.store
        self._runner = runner

    async def claim(self, dead_after_sec: float) -> int:
        """Take over what no living server has; how many rollouts that were.

        Raises:
            StoreUnavailableError: the store does not answer; nothing is lost by it.
        """
        retention = self._context.settings.windows.retention
        claimed = await self._store.claim(self._server_id, dead_after_sec, retention)
        if claimed:
            logger.warning("%d rollout(s) of a server that ended were taken over", len(claimed))
        await self._settle(claimed)
        await self._context.outbox.resume()
        return len(claimed)

    async def sweep(self, strays: Sequence[str]) -> None:
        """End or run again what is this server's by the store, and does not run here."""
        claimed = await self._store.reclaim(self._server_id, strays)
        if claimed:
            logger.warning("%d rollout(s) were stored and not running", len(claimed))
        await self._settle(claimed)

    async def _settle(self, claimed: Sequence[Claimed]) -> None:
        for one in claimed:
            try:
                request, lost = self._request(one)
            except ValueError as exc:
                logger.error(
                    "Rollout %s: its stored request cannot be read: %s", one.record.id, exc
                )
                await self._end(one, None, interrupted("its request cannot be read any more"))
                continue
            if one.record.disposition is not None:
                await self._end(one, request, CANCELLED)
            elif (why := _not_again(one, lost)) is not None:
                await self._end(one, request, interrupted(why))
            else:
                self._run_again(one, request)

    def _request(self, one: Claimed) -> tuple[RolloutInitRequest, str | None]:
        """The request, and why its credentials are missing, if they are."""
        try:
            return restore(one.request, self._store.keys.unseal(one.sealed)), None
        except CredentialsLostError as exc:
            return restore(one.request, {}), str(exc)

    def _run_again(self, one: Claimed, request: RolloutInitRequest) -> None:
        record = one.record
        logger.info("Rollout %s: run again (attempt %d)", record.id, record.attempt + 1)
        queued = RolloutStatus.QUEUED
        self._store.move(
            StatusChange(record.id, self._server_id, record.attempt, queued, time.time())
        )
        self._runner.start(request, RolloutIdentity.of(record), one.callbacks)

    async def _end(
        self, one: Claimed, request: RolloutInitRequest | None, result: ExecutionResult
    ) -> None:
        record, now = one.record, time.time()
        owed = [] if request is None else last_callbacks(request, result, None, {*one.callbacks})
        prepared = [self._context.callbacks.prepared(callback) for callback in owed]
        terminal = TerminalResult(
            rollout_id=record.id,
            owner=self._server_id,
            attempt=record.attempt,
            encoded=encode_result(record.id, result),
            outcome=result,
            reward=None,
            at=now,
            expires_at=now + self._context.settings.windows.retention,
            # A key that cannot be opened is passed on: the callback fails and says why.
            callbacks=tuple(replace(callback, sealed=one.sealed) for callback in prepared),
        )
        if await self._store.finish(terminal):
            self._context.telemetry.outcome(result)
            logger.info("Rollout %s: %s", record.id, result.err_message)


def _not_again(one: Claimed, lost: str | None) -> str | None:
    if not one.record.rerun:
        return 'it is not run again, because its request did not say on_interrupt="rerun"'
    if one.record.attempt > MAX_RERUNS:
        return f"it was run again {MAX_RERUNS} times already"
    if lost is not None:
        return f"it cannot be run again, because {lost}"
    return None
