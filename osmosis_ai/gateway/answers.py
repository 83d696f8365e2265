"""Puts the pieces of a streamed answer together again, for the record."""

from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from osmosis_ai.gateway.records import Usage, usage_of

_ATOMIC = frozenset({"role", "id", "type", "name", "index"})
"""String fields that come once and whole; all others come in pieces."""

_OBJECT_CHARS = 64
"""What a new choice, tool call or field counts, so that many empty ones are bounded too."""


@dataclass
class _Message:
    """One object that arrives in deltas: a message, a tool call, or a call's function."""

    whole: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, StringIO] = field(default_factory=dict)
    parts: dict[str, "_Message"] = field(default_factory=dict)
    tool_calls: dict[int, "_Message"] = field(default_factory=dict)

    def joined(self) -> dict[str, Any]:
        value: dict[str, Any] = dict(self.whole)
        value |= {key: text.getvalue() for key, text in self.texts.items()}
        value |= {key: part.joined() for key, part in self.parts.items()}
        if self.tool_calls:
            value["tool_calls"] = [call.joined() for _, call in sorted(self.tool_calls.items())]
        return value


class StreamedAnswer:
    """A chat completion growing chunk by chunk, at most ``max_chars`` of it kept."""

    def __init__(self, max_chars: int) -> None:
        self._room = max_chars
        self._truncated = False
        self._choices: dict[int, _Message] = {}
        self._finish_reasons: dict[int, str] = {}
        self.model: str | None = None
        self.usage: Usage | None = None
        self.error: str | None = None

    @property
    def finish_reason(self) -> str | None:
        """Why the first choice ended; ``None`` while it has not."""
        return self._finish_reasons.get(0)

    def add(self, chunk: dict[str, Any]) -> bool:
        """Take one chunk; return whether it carried content of the answer."""
        if isinstance(model := chunk.get("model"), str) and model:
            self.model = model
        self.usage = usage_of(chunk) or self.usage
        if error := chunk.get("error"):
            self.error = error_text(error)
        carried = False
        for choice in objects(chunk.get("choices")):
            carried = self._add_choice(choice) or carried
        return carried

    def body(self) -> dict[str, Any]:
        """The answer so far, in the shape of a completion that was not streamed."""
        choices = [
            {
                "index": index,
                "message": message.joined(),
                "finish_reason": self._finish_reasons.get(index),
            }
            for index, message in sorted(self._choices.items())
        ]
        return {"choices": choices} | ({"truncated": True} if self._truncated else {})

    def _add_choice(self, choice: dict[str, Any]) -> bool:
        index = _index(choice)
        if isinstance(reason := choice.get("finish_reason"), str):
            self._finish_reasons[index] = reason
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return False
        if (message := self._member(self._choices, index)) is not None:
            self._merge(message, delta)
        return any(value for key, value in delta.items() if key != "role")

    def _merge(self, target: _Message, delta: dict[str, Any]) -> None:
        for key, value in delta.items():
            if key == "tool_calls":
                for call in objects(value):
                    member = self._member(target.tool_calls, _index(call))
                    if member is not None:
                        self._merge(member, call)
            elif isinstance(value, dict):
                part = self._member(target.parts, key)
                if part is not None:
                    self._merge(part, value)
            elif isinstance(value, str) and value:
                self._merge_text(target, key, value)

    def _merge_text(self, target: _Message, key: str, value: str) -> None:
        known = target.whole if key in _ATOMIC else target.texts
        if not self._spend(len(value) + (0 if key in known else _OBJECT_CHARS)):
            return
        if key in _ATOMIC:
            target.whole[key] = value
        else:
            target.texts.setdefault(key, StringIO()).write(value)

    def _member[K](self, members: dict[K, _Message], key: K) -> _Message | None:
        if key not in members and self._spend(_OBJECT_CHARS):
            members[key] = _Message()
        return members.get(key)

    def _spend(self, chars: int) -> bool:
        if self._truncated or self._room < chars:
            self._truncated = True
            return False
        self._room -= chars
        return True


def error_text(error: Any) -> str:
    """The message of an OpenAI-style ``error`` value."""
    message = error.get("message") if isinstance(error, dict) else error
    return f"the upstream reported an error: {message}"


def objects(value: Any) -> list[dict[str, Any]]:
    """The JSON objects in ``value`` when it is a list, else none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _index(value: dict[str, Any]) -> int:
    index = value.get("index")
    return index if isinstance(index, int) else 0
