"""The totals of a rollout, and the line that a call becomes in its record file."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from osmosis_ai.common.model_calls import CallRecord

if TYPE_CHECKING:
    from array import array


@dataclass(frozen=True)
class LimitEvent:
    """A limit that a call ran into: which, its value, and what the agent was told."""

    at: datetime
    limit: str
    value: float
    message: str


@dataclass(frozen=True)
class EndpointSummary:
    """Totals of one rollout.

    ``calls`` were admitted, ``refused`` were turned away by a limit; ``errors`` counts
    both kinds, ``upstream_errors`` those that the upstream was at fault for, by what the
    gateway saw. ``calls_without_usage`` succeeded but reported no tokens, so the token
    totals do not hold them. ``cost_usd`` sums the calls whose cost is known. ``gaps``
    counts calls whose token ids are not exact, ``first_gap`` says why. ``limit_events``
    are the first limits that were exceeded, ``limits_exceeded`` counts all of them.
    ``records_error`` says why the record file is incomplete.
    """

    calls: int = 0
    refused: int = 0
    calls_without_usage: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    errors: int = 0
    upstream_errors: int = 0
    first_error: str | None = None
    last_error: str | None = None
    gaps: int = 0
    first_gap: str | None = None
    limits_exceeded: int = 0
    limit_events: tuple[LimitEvent, ...] = ()
    records_error: str | None = None


def record_line(record: CallRecord, *, streamed: bool, request: str, response: str) -> str:
    """One JSON line, ASCII only, so that odd Unicode in a body cannot break the file.

    ``request`` and ``response`` are JSON texts.
    """
    fields = {
        "started_at": record.started_at.isoformat(),
        "latency_to_first_token_sec": record.latency_to_first_token_sec,
        "total_sec": record.total_sec,
        "request_model": record.request_model,
        "model": record.model,
        "finish_reason": record.finish_reason,
        "usage": None if record.usage is None else asdict(record.usage),
        "status": record.status,
        "error": record.error,
        "api": record.api,
        "prompt_token_ids": _numbers(record.prompt_token_ids),
        "completion_token_ids": _numbers(record.completion_token_ids),
        "logprobs": _numbers(record.logprobs),
        "token_gap": record.token_gap,
        "streamed": streamed,
    }
    return f'{json.dumps(fields)[:-1]}, "request": {request}, "response": {response}}}'


def _numbers(values: "array[Any] | None") -> list[Any] | None:
    return None if values is None else values.tolist()
