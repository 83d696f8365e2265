"""Follows a rollout on a server of the callback generation, which gives no lease."""

import asyncio
from collections.abc import AsyncGenerator

from osmosis_ai.rollout.client.caller import Caller, accepted, parsed, segment
from osmosis_ai.rollout.client.retry import ask_until
from osmosis_ai.rollout.types.protocol import RolloutResultResponse, RolloutStatusResponse
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import RolloutStatus

INTERVAL_SEC = 1.0
UNKNOWN_SEC = 10.0
SILENCE_SEC = 120.0

NO_STATUS = (
    "the server keeps no status of this rollout; its result goes to completion_callback_url and "
    "grader_callback_url only"
)


async def poll_status(
    caller: Caller,
    rollout_id: str,
    *,
    interval_sec: float = INTERVAL_SEC,
    unknown_sec: float = UNKNOWN_SEC,
) -> AsyncGenerator[RolloutResultResponse]:
    """Read ``GET /rollout/{id}/status`` again and again until the rollout ends.

    That route knows the reward but no messages, and servers whose backend keeps
    no state say ``unknown`` always: after ``unknown_sec`` of it the last answer
    is ``unknown`` with a message.

    Raises:
        RolloutUnreachableError: no answer for two minutes.
        RolloutProtocolError: the server answers otherwise than the protocol says.
    """
    now = asyncio.get_running_loop().time
    asked = f"GET /rollout/{rollout_id}/status"
    path = f"/rollout/{segment(rollout_id)}/status"
    known_at = now()
    while True:
        _, response = await ask_until(now() + SILENCE_SEC, asked, lambda: caller.get(path))
        found = parsed(RolloutStatusResponse, asked, accepted(asked, response))
        if found.status is not RolloutStatus.UNKNOWN:
            known_at = now()
            yield _as_result(found)
            if found.status.is_terminal:
                return
        elif now() - known_at >= unknown_sec:
            yield RolloutResultResponse(
                rollout_id=rollout_id, status=RolloutStatus.UNKNOWN, err_message=NO_STATUS
            )
            return
        await asyncio.sleep(interval_sec)


def _as_result(found: RolloutStatusResponse) -> RolloutResultResponse:
    sample = None if found.reward is None else RolloutSample(reward=found.reward)
    return RolloutResultResponse(
        rollout_id=found.rollout_id,
        status=found.status,
        sample=sample,
        err_message=found.err_message,
    )
