"""What is kept of each call, and the totals of a rollout."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from osmosis_ai.gateway.usage import Usage

if TYPE_CHECKING:
    from array import array

type Kind = Literal["policy", "judge"]
type Api = Literal["chat_completions", "responses", "responses_as_chat"]


@dataclass(frozen=True)
class CallRecord:
    """One model call, without its bodies.

    Attributes:
        started_at: when the request's head arrived, UTC.
        latency_to_first_token_sec: until the first event with content; ``None`` for an
            answer that was not streamed.
        total_sec: until the answer was complete.
        request_model: the model the agent asked for.
        model: the model the upstream says it used.
        finish_reason: that of the first choice; of a Response, its status.
        usage: ``None`` when the upstream reported none.
        status: the HTTP status given to the agent; for a stream that broke, the status
            it would have had. 499 is an agent that left before the answer was complete.
        error: what went wrong, or ``None``.
        api: the API that the agent used; ``responses_as_chat`` was translated, and its
            request and response are recorded as the chat completions they became.
        prompt_token_ids: as the upstream gave them; ``None`` when it did not, and when
            ``GatewayLimits.max_tokens_in_memory`` is used up.
        completion_token_ids: the same for what was sampled, of the first choice.
        logprobs: log probability per sampled token.
        token_gap: why the token ids are not an exact record of the call; ``None`` when
            they are, and when ids were neither asked for nor given.
    """

    started_at: datetime
    latency_to_first_token_sec: float | None
    total_sec: float
    request_model: str | None
    model: str | None
    finish_reason: str | None
    usage: Usage | None
    status: int
    error: str | None
    api: Api = "chat_completions"
    prompt_token_ids: "array[int] | None" = None
    completion_token_ids: "array[int] | None" = None
    logprobs: "array[float] | None" = None
    token_gap: str | None = None


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
    both kinds. ``calls_without_usage`` succeeded but reported no tokens, so the token
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
