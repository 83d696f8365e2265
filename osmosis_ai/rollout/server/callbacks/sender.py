"""One attempt to hand a callback over."""

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from osmosis_ai.common.retry_after import retry_after_sec
from osmosis_ai.rollout.server.callbacks.entries import Callback
from osmosis_ai.rollout.server.callbacks.limits import OutboxLimits
from osmosis_ai.rollout.server.callbacks.urls import origin
from osmosis_ai.rollout.trajectory.report import TrajectoryReport, report_from_response

logger = logging.getLogger(__name__)

_TOO_MANY = 429


class RefusedCallbackError(Exception):
    """The trainer will never take this callback; the text says what it answered."""


class UndeliveredError(Exception):
    """The callback may work later.

    Attributes:
        retry_after_sec: how long the trainer asked to be left alone.
    """

    def __init__(self, problem: str, retry_after_sec: float = 0.0) -> None:
        super().__init__(problem)
        self.retry_after_sec = retry_after_sec


class CallbackSender:
    """Posts callbacks over HTTP/1.1, within ``open()``.

    It speaks to the transport, not through a client: no redirects, cookies,
    proxies or ``.netrc`` from the environment, and no URL in a log line.
    """

    def __init__(self, limits: OutboxLimits) -> None:
        self._limits = limits
        self._transport: httpx.AsyncHTTPTransport | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep connections while the block runs."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=self._limits.in_all)
        async with httpx.AsyncHTTPTransport(limits=limits) as transport:
            self._transport = transport
            try:
                yield
            finally:
                self._transport = None

    async def send(self, callback: Callback) -> TrajectoryReport | None:
        """Try once; returns the report that the trainer's answer carried.

        A success status is final whatever follows it: the trainer has taken the
        callback, and must not get it again because its answer broke off.

        Raises:
            RefusedCallbackError: another attempt cannot work.
            UndeliveredError: it did not work this time.
        """
        where = origin(callback.url)
        response: httpx.Response | None = None
        try:
            async with asyncio.timeout(self._limits.attempt_sec):
                response = await self._posted(callback)
                try:
                    return await self._taken(callback, response, where)
                finally:
                    await response.aclose()
        except (httpx.TransportError, TimeoutError) as exc:
            problem = f"{where}: {type(exc).__name__} {exc}".rstrip()
            if response is None or not response.is_success:
                raise UndeliveredError(problem) from exc
            logger.warning(
                "Rollout %s: the answer to its %s callback broke off, so its report is lost: %s",
                callback.rollout_id, callback.kind, problem,
            )  # fmt: skip
            return None

    async def _posted(self, callback: Callback) -> httpx.Response:
        assert self._transport is not None
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "osmosis-ai",
            "Idempotency-Key": hashlib.sha256(callback.kind.encode() + callback.body).hexdigest(),
            **(callback.auth.as_bearer_headers() or {}),
        }
        seconds = self._limits.attempt_sec
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), seconds)
        request = httpx.Request(
            "POST", callback.url, headers=headers, content=callback.body,
            extensions={"timeout": timeouts},
        )  # fmt: skip
        return await self._transport.handle_async_request(request)

    async def _taken(
        self, callback: Callback, response: httpx.Response, where: str
    ) -> TrajectoryReport | None:
        status = response.status_code
        if status == _TOO_MANY or status >= 500:
            pause = retry_after_sec(response.headers.get("Retry-After")) or 0.0
            raise UndeliveredError(f"{where} answered {status}", pause)
        if not response.is_success:
            raise RefusedCallbackError(f"{where} answered {status}")
        answer = bytearray()
        async for chunk in response.aiter_raw():
            answer += chunk
            if len(answer) > self._limits.ack_bytes:
                logger.warning(
                    "Rollout %s: the answer to its %s callback is longer than %d bytes and was "
                    "not read", callback.rollout_id, callback.kind, self._limits.ack_bytes,
                )  # fmt: skip
                return None
        return _report(bytes(answer))


def _report(answer: bytes) -> TrajectoryReport | None:
    if not answer.strip():
        return None
    try:
        decoded = json.loads(answer)
    except (ValueError, RecursionError):
        return None  # an acknowledgement need not be JSON
    return report_from_response(decoded)
