"""Asking a server again: after which problems, and how long to wait before."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_never,
    wait_exponential,
)

from osmosis_ai.rollout.client.caller import refused
from osmosis_ai.rollout.client.errors import RolloutProtocolError, RolloutUnreachableError

TOO_MANY = 429
BUSY = frozenset({502, 503, 504})
"""What a server says that is overloaded or restarts, and a proxy in front of one that is down."""

_LONGEST_PAUSE_SEC = 8.0
_FIRST_PAUSE_SEC = 0.1
_SHORTEST_ASKED_SEC = 0.05
_LONGEST_ASKED_SEC = 60.0
_ASKED_SEC = 5.0

type Stop = Callable[[RetryCallState], bool]
type Sleep = Callable[[float], Awaitable[None]]


def may_pass(problem: BaseException) -> bool:
    """Whether the same question may be answered later: no connection, or a busy server."""
    if isinstance(problem, RolloutProtocolError):
        return problem.status_code == TOO_MANY or problem.status_code in BUSY
    return isinstance(problem, httpx.TransportError)


def asked_pause_sec(retry_after_sec: float | None) -> float:
    """How long to leave a server alone that answered 429.

    What its ``Retry-After`` says, from 0.05 to 60 s; 5 s where it says nothing.
    """
    seconds = _ASKED_SEC if retry_after_sec is None else retry_after_sec
    return min(max(seconds, _SHORTEST_ASKED_SEC), _LONGEST_ASKED_SEC)


def retrying(
    first_pause_sec: float,
    *,
    when: Callable[[BaseException], bool] = may_pass,
    stop: Stop = stop_never,
    sleep: Sleep = asyncio.sleep,
) -> AsyncRetrying:
    """Call a coroutine function again ``when`` its error may pass; any other error is raised.

    The pauses double from ``first_pause_sec`` up to eight seconds; after a 429 the
    server says how long. Without ``stop`` it goes on until it is cancelled.
    """
    backoff = wait_exponential(first_pause_sec, max=_LONGEST_PAUSE_SEC)

    def pause(state: RetryCallState) -> float:
        problem = state.outcome.exception() if state.outcome is not None else None
        if isinstance(problem, RolloutProtocolError) and problem.status_code == TOO_MANY:
            return asked_pause_sec(problem.retry_after_sec)
        return backoff(state)

    return AsyncRetrying(
        retry=retry_if_exception(when), wait=pause, stop=stop, sleep=sleep, reraise=True
    )


async def ask_until(
    deadline: float, asked: str, ask: Callable[[], Awaitable[httpx.Response]]
) -> tuple[float, httpx.Response]:
    """Return the loop time of the question that was answered 200, and that answer.

    A problem that may pass leads to the next try, unless that would begin after
    ``deadline``, a loop time. ``asked`` is what errors call the question.

    Raises:
        RolloutUnreachableError: it would.
        RolloutProtocolError: any other answer.
    """
    now = asyncio.get_running_loop().time

    async def once() -> tuple[float, httpx.Response]:
        began = now()
        response = await ask()
        if response.status_code != 200:
            raise refused(asked, response)
        return began, response

    def too_late(state: RetryCallState) -> bool:
        return now() + state.upcoming_sleep >= deadline

    try:
        answer: tuple[float, httpx.Response] = await retrying(_FIRST_PAUSE_SEC, stop=too_late)(once)
    except (httpx.TransportError, RolloutProtocolError) as exc:
        if not may_pass(exc):
            raise
        raise RolloutUnreachableError(
            f"{asked}: not answered while it could matter; the last problem: {exc!r}"
        ) from exc
    return answer
