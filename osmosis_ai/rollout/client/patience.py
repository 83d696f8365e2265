"""One question, asked until it is answered or no answer can matter any more."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx

from osmosis_ai.rollout.client.caller import BUSY, refused
from osmosis_ai.rollout.client.errors import RolloutUnreachableError
from osmosis_ai.rollout.client.pauses import pauses, retry_after_sec

_FIRST_PAUSE_SEC = 0.1


async def answer(
    asked: str, ask: Callable[[], Awaitable[httpx.Response]], until: float
) -> tuple[float, httpx.Response]:
    """Return the loop time of the question that was answered 200, and that answer.

    Dropped connections, 502, 503, 504 and 429 lead to the next try, unless it
    would begin after the loop time ``until``.

    Raises:
        RolloutUnreachableError: it would.
        RolloutProtocolError: any other answer.
    """
    now = asyncio.get_running_loop().time
    waits = pauses(_FIRST_PAUSE_SEC)
    while True:
        began, pause = now(), next(waits)
        try:
            response = await ask()
        except httpx.TransportError as exc:
            problem: Exception = exc
        else:
            if response.status_code == 200:
                return began, response
            problem = refused(asked, response)
            if response.status_code == 429:
                pause = retry_after_sec(response.headers.get("Retry-After"))
            elif response.status_code not in BUSY:
                raise problem
        if now() + pause >= until:
            raise RolloutUnreachableError(
                f"{asked}: not answered while it could matter; the last problem: {problem!r}"
            ) from problem
        await asyncio.sleep(pause)
