"""Makes streamed calls report their tokens, which a token limit depends on."""

import json
from typing import Any


def must_ask_for_usage(payload: dict[str, Any]) -> bool:
    """Whether a request streams without asking for the usage event."""
    options = payload.get("stream_options")
    asked = isinstance(options, dict) and options.get("include_usage") is True
    return payload.get("stream") is True and not asked


def asking_for_usage(payload: dict[str, Any]) -> bytes:
    """The request's body with the usage event asked for, all else as it was."""
    options = payload.get("stream_options")
    known = options if isinstance(options, dict) else {}
    asked = payload | {"stream_options": known | {"include_usage": True}}
    return json.dumps(asked).encode()


def is_usage_event(chunk: dict[str, Any] | None) -> bool:
    """Whether a chunk is the usage event, which an agent that did not ask must not see."""
    return chunk is not None and chunk.get("choices") == [] and bool(chunk.get("usage"))
