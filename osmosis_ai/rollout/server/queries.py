"""What callers ask about rollouts, whichever server runs them."""

import asyncio
import time
from hmac import compare_digest

from osmosis_ai.rollout.server.auth import token_digest
from osmosis_ai.rollout.server.context import ServerContext
from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.remotes import Remotes
from osmosis_ai.rollout.server.run import Run
from osmosis_ai.rollout.server.runner import Runner
from osmosis_ai.rollout.server.store.records import Record
from osmosis_ai.rollout.server.wire import encode_progress, is_clean
from osmosis_ai.rollout.types.protocol import CancelRolloutsRequest
from osmosis_ai.rollout.types.status import RolloutStatus

_ELSEWHERE_SEC = 0.5
"""Pause of a poll whose rollout is between two servers."""


class RolloutQueries:
    """Polls, records and cancellations, whichever server runs the rollouts."""

    def __init__(self, context: ServerContext, runner: Runner, remotes: Remotes) -> None:
        self._store = context.store
        self._windows = context.settings.windows
        self._runner = runner
        self._remotes = remotes

    async def poll(self, rollout_id: str, token: str, seen: RolloutStatus | None = None) -> bytes:
        """Wait until the status differs from ``seen``, at most the wait window.

        Without ``seen`` it is the status last told to anybody, which may have
        been told into a connection that was cut.

        Returns an encoded ``RolloutResultResponse`` and renews the lease.

        Raises:
            RefusedError: 403 the token is another's, 404 the id is not known.
        """
        run = self._runner.find(rollout_id)
        if run is not None:
            _check(token, run.identity.digest, rollout_id)
            return await self._poll_here(run, seen)
        record = await self.record(rollout_id)
        if record is None or _is_forgotten(record):
            raise unknown(rollout_id)
        _check(token, record.digest, rollout_id)
        if record.finished:
            result = await self._store.result(rollout_id)
            if result is None:
                raise unknown(rollout_id)
            return result
        if self._store.shared:
            return await self._remotes.poll(record, seen)
        await asyncio.sleep(min(_ELSEWHERE_SEC, self._windows.wait))
        return encode_progress(rollout_id, record.status)

    async def record(self, rollout_id: str) -> Record | None:
        """What is known of a rollout, as the store has it."""
        return await self._store.find(rollout_id) if is_clean(rollout_id) else None

    async def cancel(self, request: CancelRolloutsRequest) -> dict[str, str]:
        """Cancel the chosen rollouts, wherever they run; returns ``{id: disposition}``."""
        chosen = request.ids
        if chosen is None:
            prefix = "" if request.all else request.prefix or ""
            chosen = list(await self._store.known(prefix)) if is_clean(prefix) else []
        return {known: await self._cancel_one(known) for known in dict.fromkeys(chosen)}

    async def _poll_here(self, run: Run, seen: RolloutStatus | None) -> bytes:
        if run.lapsed and not run.watch.finished:
            await self._runner.expire(run)
        if run.lease is not None and not run.watch.finished:
            run.lease.renew()
        return await run.watch.change(self._windows.wait, seen)

    async def _cancel_one(self, rollout_id: str) -> str:
        run = self._runner.find(rollout_id)
        if run is not None:
            disposition = await self._runner.cancel(run)
            if disposition != "not_found":
                await self._store.ask_cancel(rollout_id, disposition)
            return disposition
        record = await self.record(rollout_id)
        if record is None or record.finished:
            return "not_found"
        queued = record.status is RolloutStatus.QUEUED
        asked = "cancelled_queued" if queued else "cancelled_running"
        return await self._store.ask_cancel(rollout_id, asked) or "not_found"


def unknown(rollout_id: str) -> RefusedError:
    """The answer about a rollout that this server does not know."""
    return RefusedError(404, f"no rollout {rollout_id!r}: never admitted, or forgotten")


def _is_forgotten(record: Record) -> bool:
    return record.expires_at is not None and record.expires_at <= time.time()


def _check(token: str, digest: bytes, rollout_id: str) -> None:
    if not compare_digest(digest, token_digest(token)):
        raise RefusedError(403, f"this lease token does not open rollout {rollout_id!r}")
