"""A Response of an upstream that serves the Responses API itself, for the record."""

import json
from typing import TYPE_CHECKING, Any

from osmosis_ai.gateway.jsonvalues import error_text, nonempty
from osmosis_ai.gateway.recordfile import Body
from osmosis_ai.gateway.usage import usage_of

if TYPE_CHECKING:
    from osmosis_ai.common.model_calls import Usage

ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""The last event of a stream, which repeats the whole Response."""


class NativeAnswer:
    """What a record needs of a Response, whole or as the last event repeats it."""

    def __init__(self) -> None:
        self._response: dict[str, Any] | None = None
        self._status: str | None = None
        self.model: str | None = None
        self.usage: Usage | None = None
        self.error: str | None = None

    @property
    def finish_reason(self) -> str | None:
        """The Response's status, once it has ended."""
        return self._status

    def take(self, answer: dict[str, Any]) -> None:
        """See ``Accumulator``."""
        self.model = nonempty(answer.get("model")) or self.model
        self.usage = usage_of(answer) or self.usage
        self._status = nonempty(answer.get("status"))
        if error := answer.get("error"):
            self.error = error_text(error)

    def add(self, event: dict[str, Any]) -> bool:
        """See ``Accumulator``."""
        kind = event.get("type")
        if kind in ENDS and isinstance(response := event.get("response"), dict):
            self._response = response
            self.take(response)
        elif kind == "error" or event.get("error"):
            self.error = error_text(event.get("error") or event)
        return isinstance(kind, str) and kind.endswith(".delta")

    def body(self) -> Body:
        """See ``Accumulator``."""
        if self._response is None:
            return Body(None, None)
        return Body(json.dumps(self._response).encode(), self._response)
