"""What is kept of each call, and the file it is appended to."""

import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from osmosis_ai.gateway.redaction import Redactor

_LONGEST_KEY = 8192


@dataclass(frozen=True)
class Usage:
    """Tokens of one call as the upstream counted them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True)
class CallRecord:
    """One chat completion, without its bodies.

    Attributes:
        started_at: when the request's head arrived, UTC.
        latency_to_first_token_sec: until the first event with content; ``None`` for an
            answer that was not streamed.
        total_sec: until the answer was complete.
        request_model: the model the agent asked for.
        model: the model the upstream says it used.
        finish_reason: that of the first choice.
        usage: ``None`` when the upstream reported none.
        status: the HTTP status given to the agent; for a stream that broke, the status
            it would have had. 499 is an agent that left before the answer was complete.
        error: what went wrong, or ``None``.
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


@dataclass(frozen=True)
class EndpointSummary:
    """Totals of one rollout.

    ``calls`` were admitted, ``refused`` were turned away by a limit; ``errors`` counts
    both kinds. ``calls_without_usage`` succeeded but reported no tokens, so the token
    totals do not hold them. ``records_error`` says why the record file is incomplete.
    """

    calls: int = 0
    refused: int = 0
    calls_without_usage: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    errors: int = 0
    first_error: str | None = None
    last_error: str | None = None
    records_error: str | None = None


def usage_of(answer: dict[str, Any]) -> Usage | None:
    """Read OpenAI's ``usage`` object; ``None`` when it is missing or not one."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    return Usage(
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else 0,
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def record_line(record: CallRecord, *, streamed: bool, request: Any, response: Any) -> str:
    """One JSON line, ASCII only, so that odd Unicode in a body cannot break the file."""
    fields = asdict(record) | {"started_at": record.started_at.isoformat()}
    return json.dumps(fields | {"streamed": streamed, "request": request, "response": response})


def bounded_body(body: bytes, parsed: Any, max_bytes: int, redact: Redactor) -> Any:
    """``parsed`` when its text is small enough, else the text's head and its size."""
    if len(body) <= max_bytes:
        return parsed
    # Redact before cutting: half a key is no longer recognised, but still a leak.
    text = redact(body[: max_bytes + _LONGEST_KEY].decode("utf-8", errors="replace"))
    return {"truncated": True, "bytes": len(body), "head": text[:max_bytes]}


class RecordFile:
    """Appends lines to one rollout's file until ``max_bytes`` are reached.

    Appending is synchronous on purpose: a line is handed to the kernel before the
    agent can see the end of the answer it describes.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes

    def append(self, line: str) -> None:
        """Write one line.

        Raises:
            OSError: the file is full, is a symlink, or cannot be written.
        """
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        data = line.encode("ascii") + b"\n"
        descriptor = os.open(self._path, flags, 0o600)
        with open(descriptor, "ab", buffering=0) as file:
            size = os.fstat(descriptor).st_size
            if size + len(data) > self._max_bytes:
                raise OSError(
                    f"{self._path.name} is full: {size} bytes, "
                    f"GatewayLimits.max_records_bytes is {self._max_bytes}"
                )
            file.write(data)
