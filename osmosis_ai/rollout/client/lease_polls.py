"""Follows a rollout by polling its result, which keeps its lease."""

import asyncio
from collections.abc import AsyncGenerator

import httpx

from osmosis_ai.rollout.client.caller import Caller, accepted, parsed, segment
from osmosis_ai.rollout.client.errors import RolloutProtocolError
from osmosis_ai.rollout.client.retry import ask_until
from osmosis_ai.rollout.types.protocol import (
    POLLING_LEASE_HEADER,
    RolloutInitResponse,
    RolloutResultResponse,
)
from osmosis_ai.rollout.types.status import RolloutErrorCategory

_READ_MARGIN_SEC = 10.0
_SOON_SEC = 0.5
"""A status told again sooner than this was not waited for."""


async def poll_lease(
    caller: Caller, lease: RolloutInitResponse, asked_at: float
) -> AsyncGenerator[RolloutResultResponse]:
    """Poll until the rollout ends; yields every answer, the last one terminal.

    A poll that fails is repeated as long as the lease can still be alive: it
    counts from the last request that was answered.

    Raises:
        RolloutUnreachableError: it cannot be alive any more.
        RolloutProtocolError: the server answers otherwise than the protocol says.
    """
    now = asyncio.get_running_loop().time
    asked = f"GET /rollout/{lease.rollout_id}/result"
    path = f"/rollout/{segment(lease.rollout_id)}/result"
    headers = {POLLING_LEASE_HEADER: lease.polling_lease_token}
    read_sec = lease.result_wait_timeout_sec + _READ_MARGIN_SEC
    soon = min(_SOON_SEC, lease.result_wait_timeout_sec / 2)
    answered, told = asked_at, lease.status

    async def ask() -> httpx.Response:
        # The server may have told a status into a connection that was cut; what this side has
        # seen is what counts. Servers that do not know the parameter ignore it.
        return await caller.get(f"{path}?seen={told.value}", headers, read_sec=read_sec)

    while True:
        expires = answered + lease.polling_lease_timeout_sec
        answered, response = await ask_until(expires, asked, ask)
        result = _result(asked, response, lease.rollout_id)
        yield result
        if result.status.is_terminal:
            return
        if result.status is told and now() - answered < soon:
            # It does not wait for changes, so this side must, or the two would spin.
            await asyncio.sleep(soon)
        told = result.status


def _result(asked: str, response: httpx.Response, rollout_id: str) -> RolloutResultResponse:
    fields = accepted(asked, response)
    category = fields.get("err_category")
    if isinstance(category, str) and category not in set(RolloutErrorCategory):
        # A newer server's word for a failure is no reason to lose the result.
        message = f"[{category}] {fields.get('err_message') or ''}".rstrip()
        fields = fields | {"err_category": None, "err_message": message}
    result = parsed(RolloutResultResponse, asked, fields)
    if result.rollout_id != rollout_id:
        raise RolloutProtocolError(
            f"{asked}: the result of another rollout, {result.rollout_id!r}", status_code=200
        )
    return result
