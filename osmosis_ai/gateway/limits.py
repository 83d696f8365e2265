"""How much one rollout may ask of the gateway."""

from dataclasses import dataclass, fields

_MIB = 1024 * 1024


@dataclass(frozen=True)
class GatewayLimits:
    """Bounds per rollout; ``None`` means unlimited.

    Attributes:
        max_connections: connections that the rollout may hold to its endpoint; one more
            ends the oldest without a call, or is answered with 503.
        max_held_bytes: bodies of calls in flight, together; a request beyond is refused
            with 429, an answer with 502.
        request_read_sec: longest that a request's body may take to arrive; then 408.
        max_request_bytes: largest request body; a larger one is answered with 413.
        max_response_bytes: largest answer held in memory, and largest single event
            of a stream; a larger one is a 502.
        max_calls: chat completions admitted, whatever became of them; then 429.
        max_tokens: prompt plus completion tokens as the upstream counted them. A call
            is refused with 429 once the total is reached; calls already in flight
            finish, so the total can pass the limit by their tokens.
        max_concurrent: chat completions in flight at once; one more is refused with 429.
        max_call_sec: longest that one call may take, streams that never end included;
            then 504.
        max_calls_in_memory: latest calls kept in ``Endpoint.calls``.
        max_tokens_in_memory: token ids and log probabilities kept there; the file still
            gets those of later calls.
        max_record_bytes: request body and, separately, response body kept per record.
        max_record_tokens: token ids recorded per call, for prompt and completion each.
        max_records_bytes: size of a rollout's record file; later calls are not written.
        upstream_idle_sec: longest silence of an upstream before the call ends with 504.
        upstream_attempts: tries for a refused connection, and for a 429 or 503 that
            names a ``Retry-After`` of at most ``max_retry_after_sec``.

    Raises:
        ValueError: a bound is negative, or one that must be positive is zero.
    """

    max_request_bytes: int = 16 * _MIB
    max_response_bytes: int = 32 * _MIB
    max_held_bytes: int = 128 * _MIB
    max_connections: int = 64
    request_read_sec: float = 60.0
    max_calls: int | None = None
    max_tokens: int | None = None
    max_concurrent: int | None = None
    max_call_sec: float | None = 3600.0
    max_calls_in_memory: int = 1000
    max_tokens_in_memory: int = 8 * _MIB
    max_record_bytes: int = _MIB
    max_record_tokens: int = 2 * _MIB
    max_records_bytes: int = 256 * _MIB
    upstream_idle_sec: float = 600.0
    upstream_attempts: int = 4
    max_retry_after_sec: float = 10.0

    def __post_init__(self) -> None:
        may_be_zero = {
            "max_calls",
            "max_tokens",
            "max_retry_after_sec",
            "max_calls_in_memory",
            "max_tokens_in_memory",
        }
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if not (value >= 0 if field.name in may_be_zero else value > 0):
                least = "zero or more" if field.name in may_be_zero else "more than zero"
                raise ValueError(f"GatewayLimits.{field.name} must be {least}, got {value!r}")
