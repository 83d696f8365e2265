"""Runs rollouts on a server, of this project or of either published generation."""

import asyncio
import math
from types import TracebackType
from typing import Any, Self, Unpack

import httpx

from osmosis_ai.rollout.client.admission import Admission, Admitted
from osmosis_ai.rollout.client.caller import Caller, accepted, parsed
from osmosis_ai.rollout.client.connections import ConnectionPerRequest
from osmosis_ai.rollout.client.handle import RolloutHandle
from osmosis_ai.rollout.client.health import wait_idle
from osmosis_ai.rollout.client.lease_polls import poll_lease
from osmosis_ai.rollout.client.request import RolloutOptions, encode_request
from osmosis_ai.rollout.client.status_polls import poll_status
from osmosis_ai.rollout.types.messages import MessageDict
from osmosis_ai.rollout.types.protocol import (
    CancelRolloutsRequest,
    CancelRolloutsResponse,
    RolloutInitResponse,
    RolloutResultResponse,
)

CANCEL_SEC = 5.0


class RolloutClient:
    """One rollout server, for many rollouts at once.

    Use it as an async context manager, or call ``aclose``: both end the polling
    of every handle.

    Args:
        url: where the server is; may hold a path.
        http_client: sends the requests, and stays open. Give it as many
            connections as there are polls. Without one the client has its own,
            which does so and uses no proxy.
        admission_timeout_sec: how long a rollout may wait for admission;
            ``None`` waits as long as the server says 429, and gives up at once
            when it cannot be reached.
        api_key: the server's key.

    Raises:
        ValueError: the URL, the timeout or the key cannot be used.
    """

    def __init__(
        self,
        url: str,
        http_client: httpx.AsyncClient | None = None,
        admission_timeout_sec: float | None = None,
        api_key: str | None = None,
    ) -> None:
        if admission_timeout_sec is not None and not (
            math.isfinite(admission_timeout_sec) and admission_timeout_sec > 0
        ):
            raise ValueError(
                "admission_timeout_sec must be finite and above 0, or None, got "
                f"{admission_timeout_sec!r}"
            )
        self._own_http = http_client is None
        self._http = http_client or httpx.AsyncClient(transport=ConnectionPerRequest())
        self._caller = Caller(url, self._http, api_key)
        self._admission_timeout_sec = admission_timeout_sec
        self._handles: set[RolloutHandle] = set()

    async def run_rollout(
        self,
        initial_messages: list[MessageDict],
        chat_completions_url: str,
        rollout_id: str | None = None,
        **options: Unpack[RolloutOptions],
    ) -> RolloutResultResponse:
        """Run a rollout and return its result.

        Cancelling this call ends the polling, and so the rollout with its lease.

        Raises:
            RolloutUnreachableError: the server was silent for as long as the
                lease lasts.
            Exception: what ``run_rollout_async`` raises.
        """
        handle = await self.run_rollout_async(
            initial_messages, chat_completions_url, rollout_id, **options
        )
        try:
            return await handle
        finally:
            await handle.closed()

    async def run_rollout_async(
        self,
        initial_messages: list[MessageDict],
        chat_completions_url: str,
        rollout_id: str | None = None,
        **options: Unpack[RolloutOptions],
    ) -> RolloutHandle:
        """Have a rollout admitted; its handle follows it.

        Args:
            initial_messages: the prompt, as chat messages.
            chat_completions_url: the model that the rollout may call.
            rollout_id: one path segment; made up if ``None``.
            options: see ``RolloutOptions``.

        Raises:
            RolloutAdmissionTimeoutError: no admission in time, or its answer
                was lost and it must not be asked for again.
            RolloutProtocolError: the server refused it.
            httpx.TransportError: the server cannot be reached.
            TypeError, ValueError: an argument cannot be sent.
        """
        name, body = encode_request(initial_messages, chat_completions_url, rollout_id, options)
        admission = Admission(self._caller, name, body, self._admission_timeout_sec)
        return self._follow(await admission.run())

    def resume(self, admission: RolloutInitResponse) -> RolloutHandle:
        """Follow a rollout that was admitted before, perhaps to another process.

        ``admission`` is a handle's; it holds the token, so keep it as a secret.
        """
        now = asyncio.get_running_loop().time()
        return self._follow(Admitted(admission.rollout_id, admission, now))

    async def health(self) -> dict[str, Any]:
        """What the server says of itself.

        Raises:
            RolloutProtocolError: it is refused.
            httpx.TransportError: the server cannot be reached.
        """
        return await self._caller.health()

    async def wait_idle(
        self,
        *,
        timeout_sec: float = 120,
        poll_interval_sec: float = 1,
        process_id: str | None = None,
    ) -> dict[str, Any]:
        """Wait until the server runs no rollout; returns its health then.

        Raises:
            TimeoutError: it was not idle, or not reachable, in time.
            RolloutProtocolError: its ``process_id`` is another than the given
                one, so it was restarted; or it does not tell what it runs.
        """
        return await wait_idle(self._caller, timeout_sec, poll_interval_sec, process_id)

    async def cancel_rollout(self, rollout_id: str) -> CancelRolloutsResponse:
        """Have the server end a rollout.

        Raises:
            TimeoutError: no answer within 5 seconds.
            RolloutProtocolError: it is refused.
            httpx.TransportError: the server cannot be reached.
        """
        body = CancelRolloutsRequest(ids=[rollout_id]).model_dump_json(exclude_defaults=True)
        async with asyncio.timeout(CANCEL_SEC):
            response = await self._caller.post("/rollout/cancel", body.encode())
        asked = "POST /rollout/cancel"
        return parsed(CancelRolloutsResponse, asked, accepted(asked, response))

    async def aclose(self) -> None:
        """End the polling of every handle, and the connections unless they are the caller's."""
        for handle in list(self._handles):
            await handle.closed()
        if self._own_http:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _follow(self, admitted: Admitted) -> RolloutHandle:
        lease = admitted.lease
        if lease is None:
            handle = RolloutHandle(
                admitted.rollout_id, None, lambda: poll_status(self._caller, admitted.rollout_id)
            )
        else:
            handle = RolloutHandle(
                admitted.rollout_id,
                lease,
                lambda: poll_lease(self._caller, lease, admitted.asked_at),
            )
        self._handles.add(handle)
        handle.on_done(self._handles.discard)
        return handle
