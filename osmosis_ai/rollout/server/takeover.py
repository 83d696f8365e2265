"""What becomes of rollouts whose server was stopped or killed."""

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from osmosis_ai.rollout.server.admission import put_together
from osmosis_ai.rollout.server.callbacks import CallbackOutbox
from osmosis_ai.rollout.server.results import CANCELLED, interrupted, last_callbacks
from osmosis_ai.rollout.server.run import Admitted
from osmosis_ai.rollout.server.runner import Runner
from osmosis_ai.rollout.server.settings import Settings
from osmosis_ai.rollout.server.store import CredentialsLostError, Store
from osmosis_ai.rollout.server.store.callbacks import CallbackRows
from osmosis_ai.rollout.server.store.rollouts import Moved
from osmosis_ai.rollout.server.store.rows import Claimed, Ending
from osmosis_ai.rollout.server.wire import encode_result
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.protocol import RolloutInitRequest
from osmosis_ai.rollout.types.status import RolloutStatus
from osmosis_ai.telemetry.telemetry import Telemetry

logger = logging.getLogger(__name__)

MAX_RERUNS = 3
"""A rollout that ends its server each time must not end every server in turn."""


class Takeover:
    """Ends or runs again what one server has claimed from others."""

    def __init__(
        self,
        server: str,
        settings: Settings,
        store: Store,
        rows: CallbackRows,
        outbox: CallbackOutbox,
        runner: Runner,
        telemetry: Telemetry,
    ) -> None:
        self._server = server
        self._settings = settings
        self._store = store
        self._rows = rows
        self._outbox = outbox
        self._runner = runner
        self._telemetry = telemetry

    async def claim(self, dead_after_sec: float) -> int:
        """Take over what no living server has; how many rollouts that were.

        Raises:
            StoreUnavailableError: the store does not answer; nothing is lost by it.
        """
        retention = self._settings.windows.retention
        claimed = await self._store.claim(self._server, dead_after_sec, retention)
        if claimed:
            logger.warning("%d rollout(s) of a server that ended were taken over", len(claimed))
        await self._settle(claimed)
        await self._outbox.resume()
        return len(claimed)

    async def sweep(self, strays: Sequence[str]) -> None:
        """End or run again what is this server's by the store, and does not run here."""
        claimed = await self._store.reclaim(self._server, strays)
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
            return put_together(one.request, self._store.keys.unseal(one.sealed)), None
        except CredentialsLostError as exc:
            return put_together(one.request, {}), str(exc)

    def _run_again(self, one: Claimed, request: RolloutInitRequest) -> None:
        record = one.record
        logger.info("Rollout %s: run again (attempt %d)", record.id, record.attempt + 1)
        queued = Moved(record.id, self._server, record.attempt, RolloutStatus.QUEUED, time.time())
        self._store.moved(queued)
        admitted = Admitted(
            record.number, record.fingerprint, record.nonce, record.digest, record.attempt
        )
        self._runner.start(request, admitted, one.callbacks)

    async def _end(
        self, one: Claimed, request: RolloutInitRequest | None, result: ExecutionResult
    ) -> None:
        record, now = one.record, time.time()
        owed = [] if request is None else last_callbacks(request, result, None, {*one.callbacks})
        prepared = [self._rows.prepared(callback) for callback in owed]
        ending = Ending(
            record.id,
            self._server,
            record.attempt,
            encode_result(record.id, result),
            result,
            None,
            now,
            now + self._settings.windows.retention,
            # A key that cannot be opened is passed on: the callback fails and says why.
            tuple(replace(callback, sealed=one.sealed) for callback in prepared),
        )
        if await self._store.finish(ending):
            self._telemetry.outcome(result)
            logger.info("Rollout %s: %s", record.id, result.err_message)


def _not_again(one: Claimed, lost: str | None) -> str | None:
    if not one.record.rerun:
        return 'it is not run again, because its request did not say on_interrupt="rerun"'
    if one.record.attempt > MAX_RERUNS:
        return f"it was run again {MAX_RERUNS} times already"
    if lost is not None:
        return f"it cannot be run again, because {lost}"
    return None
