"""The server's life without HTTP: admission, polling, cancellation, shutdown."""

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel

from osmosis_ai.gateway.gateway import Gateway
from osmosis_ai.rollout.backend.base import ExecutionBackend
from osmosis_ai.rollout.server.auth import LeaseTokens, token_digest
from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.lease import Lease
from osmosis_ai.rollout.server.registry import Registry, Rollout
from osmosis_ai.rollout.server.run import check_route, run_rollout
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.protocol import (
    CancelRolloutsRequest,
    RolloutInitRequest,
    RolloutInitResponse,
)
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus

logger = logging.getLogger(__name__)

DRAIN_SEC = 10.0
CANCEL_SEC = 120.0
FORCE_SEC = 10.0
SAMPLE_SEC = 0.1
"""How often a waiting poll looks at the backend, which does not say when a status changes."""

_RETRY_AFTER = {"Retry-After": "5"}
_IN_BACKEND = (RolloutStatus.RUNNING, RolloutStatus.GRADING)
_CANCELLED = ("cancelled_queued", "cancelled_running")


@dataclass(frozen=True)
class Windows:
    """Seconds: how long a poll waits, how long a lease lasts unpolled, how long results stay."""

    wait: float
    lease: float
    retention: float


class RolloutService:
    """Runs admitted rollouts in tasks of its own, within ``running()``."""

    def __init__(self, backend: ExecutionBackend, windows: Windows) -> None:
        self._backend = backend
        self._windows = windows
        self._registry = Registry(windows.retention)
        self._tokens = LeaseTokens()
        self._admitting = asyncio.Lock()
        self._open: tuple[Gateway, asyncio.TaskGroup] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Accept rollouts within the block; leaving it waits for, then ends, those in flight."""
        async with Gateway() as gateway, asyncio.TaskGroup() as group:
            self._open = (gateway, group)
            try:
                yield
            finally:
                self._open = None
                await self._drain()
                await self._backend.shutdown()

    def lifecycle(self) -> dict[str, Any]:
        """The server's own part of ``/health``."""
        return {
            "accepting_rollouts": self._open is not None,
            "active_rollouts": len(self._registry.in_flight()),
        }

    async def admit(self, request: RolloutInitRequest) -> RolloutInitResponse:
        """Start a rollout, or return the admission of the very same request again.

        Raises:
            RefusedError: 409 the id is taken, 422 the route to the model cannot
                work, 429 no capacity, 503 shutting down.
        """
        async with self._admitting:
            fingerprint = self._fingerprint(request)
            known = self._registry.find(request.rollout_id)
            if known is None:
                known = await self._start(request, fingerprint)
            elif known.fingerprint != fingerprint:
                raise RefusedError(
                    409,
                    f"rollout_id {request.rollout_id!r} belongs to another rollout, in flight or "
                    "with its result still kept; send another id",
                )
        return RolloutInitResponse(
            rollout_id=known.id,
            status=known.status,
            polling_lease_token=self._tokens.make(known.nonce),
            result_wait_timeout_sec=self._windows.wait,
            polling_lease_timeout_sec=self._windows.lease,
        )

    async def poll(self, rollout_id: str, token: str) -> bytes:
        """Wait until the status differs from the one last told, at most the wait window.

        Returns an encoded ``RolloutResultResponse`` and renews the lease.

        Raises:
            RefusedError: 403 the token is another's, 404 the id is not known.
        """
        rollout = self._registry.find(rollout_id)
        if rollout is None:
            raise RefusedError(404, f"no rollout {rollout_id!r}: never admitted, or forgotten")
        if not rollout.opens_with(token):
            raise RefusedError(403, f"this lease token does not open rollout {rollout_id!r}")
        if rollout.lease.lapsed:
            rollout.finish(_LEASE_EXPIRED)
        if not rollout.finished:
            rollout.lease.renew()
            with anyio.move_on_after(self._windows.wait):
                await self._status_change(rollout, rollout.reported)
        rollout.reported = rollout.status
        return rollout.body

    async def cancel(self, request: CancelRolloutsRequest) -> dict[str, str]:
        """Cancel the chosen rollouts; returns ``{id: disposition}``."""
        chosen = request.ids
        if chosen is None:
            chosen = self._registry.matching("" if request.all else request.prefix or "")
        return {known: await self._cancel_one(known) for known in dict.fromkeys(chosen)}

    async def _start(self, request: RolloutInitRequest, fingerprint: bytes) -> Rollout:
        if self._open is None:
            raise RefusedError(503, "the server is not accepting rollouts: it is shutting down")
        gateway, group = self._open
        try:
            await check_route(request, gateway)
        except ValueError as exc:
            raise RefusedError(422, f"chat_completions_url, llm_api_key or id: {exc}") from exc
        if not self._backend.has_capacity():
            raise RefusedError(429, "no capacity for another rollout now", _RETRY_AFTER)
        nonce = secrets.token_bytes(32)
        digest = token_digest(self._tokens.make(nonce))
        lease = Lease(self._windows.lease)
        rollout = Rollout(request.rollout_id, fingerprint, nonce, digest, lease)
        self._registry.add(rollout)
        rollout.task = group.create_task(self._run(rollout, request, gateway), name=rollout.id)

        def ended(task: asyncio.Task[None]) -> None:
            rollout.finish(_CANCELLED_RESULT)  # a task cancelled before its first step ran nothing
            self._registry.task_ended(rollout)

        rollout.task.add_done_callback(ended)
        # The backend must have counted this one before it is asked about the next.
        await anyio.lowlevel.checkpoint()
        return rollout

    async def _run(self, rollout: Rollout, request: RolloutInitRequest, gateway: Gateway) -> None:
        try:
            async with rollout.lease.holding():
                result = await run_rollout(request, self._backend, gateway)
        except Exception as exc:
            if not rollout.lease.lapsed:
                logger.error("Rollout %s: its task crashed", rollout.id, exc_info=exc)
            result = _CRASHED
        rollout.finish(_LEASE_EXPIRED if rollout.lease.lapsed else result)

    async def _status_change(self, rollout: Rollout, told: RolloutStatus) -> None:
        while not rollout.finished:
            seen = (self._backend.rollout_status(rollout.id) or {}).get("status")
            if seen in _IN_BACKEND:
                rollout.progress.set_status(RolloutStatus(seen))
            if rollout.status is not told:
                return
            with anyio.move_on_after(SAMPLE_SEC):
                await rollout.progress.wait_for_status_change(told)

    async def _cancel_one(self, rollout_id: str) -> str:
        rollout = self._registry.find(rollout_id)
        if rollout is None or rollout.finished:
            return "not_found"
        if rollout.disposition is None:
            answers = await self._backend.cancel_rollouts(ids=[rollout_id])
            answer = answers.get(rollout_id)
            if answer == "not_found" and self._ended_in_backend(rollout_id):
                return answer
            if answer not in _CANCELLED:
                queued = rollout.status is RolloutStatus.QUEUED
                answer = "cancelled_queued" if queued else "cancelled_running"
                if rollout.task is not None:
                    rollout.task.cancel()
            rollout.disposition = answer
        return rollout.disposition

    def _ended_in_backend(self, rollout_id: str) -> bool:
        seen = (self._backend.rollout_status(rollout_id) or {}).get("status")
        return any(status.is_terminal and status == seen for status in RolloutStatus)

    async def _drain(self) -> None:
        if await self._all_ended(DRAIN_SEC):
            return
        for rollout in self._registry.in_flight():
            try:
                await self._cancel_one(rollout.id)
            except Exception:
                logger.exception("Rollout %s: the backend could not cancel it", rollout.id)
        if await self._all_ended(CANCEL_SEC):
            return
        for rollout in self._registry.in_flight():
            if rollout.task is not None:
                rollout.task.cancel()
        if not await self._all_ended(FORCE_SEC):
            stuck = ", ".join(rollout.id for rollout in self._registry.in_flight())
            logger.error("Unconfirmed cleanup: rollouts ignore their cancellation: %s", stuck)

    async def _all_ended(self, within_sec: float) -> bool:
        tasks = [rollout.task for rollout in self._registry.in_flight() if rollout.task]
        if not tasks:
            return True
        _, pending = await asyncio.wait(tasks, timeout=within_sec)
        return not pending

    def _fingerprint(self, request: RolloutInitRequest) -> bytes:
        try:
            text = json.dumps(request.model_dump(), sort_keys=True)
        except (ValueError, RecursionError) as exc:
            raise RefusedError(422, "the request is nested too deeply") from exc
        return self._tokens.keyed_digest(text.encode())


def _failure(message: str, category: RolloutErrorCategory) -> ExecutionResult:
    return ExecutionResult(status=RolloutStatus.FAILURE, err_message=message, err_category=category)


_LEASE_EXPIRED = _failure("polling lease expired", RolloutErrorCategory.LEASE_EXPIRED)
_CRASHED = _failure("rollout task crashed", RolloutErrorCategory.INTERNAL_ERROR)
_CANCELLED_RESULT = ExecutionResult(
    status=RolloutStatus.CANCELLED, err_message="The rollout was cancelled"
)
