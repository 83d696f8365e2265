"""What a benchmark's model answers and how long it takes."""

import json
from dataclasses import dataclass
from typing import Any

PIECES = 16
WORDS = [f" word{number}" for number in range(PIECES)]


@dataclass(frozen=True)
class Pace:
    """How long the model takes, in seconds: before the first token, and for each piece."""

    first_sec: float
    piece_sec: float

    @classmethod
    def of_model(cls, name: str) -> "Pace":
        """``model-<total milliseconds>``: a fifth before the first token, the rest in pieces."""
        total = int(name.rpartition("-")[2]) / 1000
        return cls(total / 5, total * 4 / 5 / PIECES)

    @property
    def total_sec(self) -> float:
        """How long a call takes in all."""
        return self.first_sec + PIECES * self.piece_sec


def completion(model: str) -> bytes:
    """An answer of some 400 bytes, as agents get them."""
    message = {"role": "assistant", "content": "".join(WORDS)}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return json.dumps(
        _head(model, "chat.completion") | {"choices": [choice], "usage": _USAGE}
    ).encode()


def chunk(model: str, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    """One event of a streamed answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
    return _event(_head(model, "chat.completion.chunk") | {"choices": [choice]})


def usage_event(model: str) -> bytes:
    """The event with the tokens."""
    return _event(_head(model, "chat.completion.chunk") | {"choices": [], "usage": _USAGE})


_USAGE = {"prompt_tokens": 400, "completion_tokens": PIECES, "total_tokens": 400 + PIECES}


def _head(model: str, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-benchmark", "object": kind, "created": 1, "model": model}


def _event(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()
