"""Puts the pieces of a streamed chat completion together again, for the record."""

from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING, Any

from osmosis_ai.gateway.jsonvalues import error_text, nonempty, objects
from osmosis_ai.gateway.recordfile import Body
from osmosis_ai.gateway.usage import usage_of

if TYPE_CHECKING:
    from osmosis_ai.common.model_calls import Usage

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


class ChatAnswer:
    """A chat completion, whole or growing chunk by chunk, at most ``max_chars`` of it kept."""

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

    def take(self, answer: dict[str, Any]) -> None:
        """See ``Accumulator``."""
        self._note(answer)
        for choice in objects(answer.get("choices")):
            self._note_end(choice)

    def add(self, chunk: dict[str, Any]) -> bool:
        """See ``Accumulator``."""
        self._note(chunk)
        carried = False
        for choice in objects(chunk.get("choices")):
            carried = self._add_choice(choice) or carried
        return carried

    def body(self) -> Body:
        """See ``Accumulator``."""
        choices = [
            {
                "index": index,
                "message": message.joined(),
                "finish_reason": self._finish_reasons.get(index),
            }
            for index, message in sorted(self._choices.items())
        ]
        return Body(None, {"choices": choices} | ({"truncated": True} if self._truncated else {}))

    def _note(self, answer: dict[str, Any]) -> None:
        self.model = nonempty(answer.get("model")) or self.model
        self.usage = usage_of(answer) or self.usage
        if error := answer.get("error"):
            self.error = error_text(error)

    def _note_end(self, choice: dict[str, Any]) -> int:
        index = _index(choice)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and (index == 0 or self._spend(_OBJECT_CHARS)):
            self._finish_reasons[index] = reason
        return index

    def _add_choice(self, choice: dict[str, Any]) -> bool:
        index = self._note_end(choice)
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


def _index(value: dict[str, Any]) -> int:
    index = value.get("index")
    return index if isinstance(index, int) else 0
