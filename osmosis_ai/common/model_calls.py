"""What is kept of a model call: the gateway writes it, telemetry and trajectories read it."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from array import array

SERVICE_STATUSES = frozenset({401, 402, 403, 429, 500, 502, 503, 504})
"""Of a service that does not serve, by the published contract; 400 is the caller's."""

type Kind = Literal["policy", "judge"]
type Api = Literal["chat_completions", "responses", "responses_as_chat"]


@dataclass(frozen=True)
class Usage:
    """Tokens of one call.

    Attributes:
        prompt_tokens: all of the prompt, cached or not.
        completion_tokens: all that was sampled, reasoning included.
        cached_tokens: the part of the prompt that a cache served.
        reasoning_tokens: the part of the completion that was reasoning.
        cost_usd: what the call cost in US dollars; ``None`` when nobody said.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None


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
