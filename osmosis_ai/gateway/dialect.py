"""How an agent's API meets the upstream's: what is sent, and what comes back."""

import json
from typing import Any, Protocol

from osmosis_ai.common.model_calls import Api
from osmosis_ai.gateway.accumulator import Accumulator
from osmosis_ai.gateway.capture import USAGE, RequestBody
from osmosis_ai.gateway.chatanswer import ChatAnswer
from osmosis_ai.gateway.errors import ApiError
from osmosis_ai.gateway.hiding import concealed, is_hidden_usage
from osmosis_ai.gateway.sse import DONE, Event, encode_event


class Dialect(Protocol):
    """One call between an agent's API and an upstream's."""

    @property
    def api(self) -> Api:
        """What the record calls it."""
        ...

    @property
    def resource(self) -> str:
        """What to ask the upstream for."""
        ...

    @property
    def request(self) -> RequestBody:
        """What to send."""
        ...

    @property
    def answer(self) -> Accumulator:
        """What came so far."""
        ...

    def ends(self, event: Event) -> bool:
        """Whether no event after this one matters."""
        ...

    def whole(self, body: bytes, answer: dict[str, Any]) -> bytes:
        """The agent's view of an answer that was not streamed."""
        ...

    def passed(self, event: Event, chunk: dict[str, Any] | None) -> bytes:
        """The agent's view of one event; empty when there is nothing for it."""
        ...

    def closing(self) -> bytes:
        """What the agent's stream still lacks when the upstream's ended in good order."""
        ...

    def broken(self, error: ApiError, message: str) -> bytes:
        """The event that says why a stream breaks off."""
        ...


class ChatDialect:
    """Chat completions on both sides: bytes pass as they are, unless some must be hidden."""

    api: Api = "chat_completions"
    resource = "chat/completions"

    def __init__(self, request: RequestBody, max_record_chars: int) -> None:
        self.request = request
        self.answer = ChatAnswer(max_record_chars)
        self._conceals = bool(request.hidden - {USAGE})

    def ends(self, event: Event) -> bool:
        """See ``Dialect``."""
        return event.data == DONE

    def whole(self, body: bytes, answer: dict[str, Any]) -> bytes:
        """See ``Dialect``."""
        shown = concealed(answer, self.request.hidden) if self._conceals else None
        return body if shown is None else json.dumps(shown).encode()

    def passed(self, event: Event, chunk: dict[str, Any] | None) -> bytes:
        """See ``Dialect``."""
        hidden = self.request.hidden
        if not hidden or chunk is None:
            return event.raw
        if is_hidden_usage(chunk, hidden):
            return b""
        shown = concealed(chunk, hidden) if self._conceals else None
        return event.raw if shown is None else encode_event(shown)

    def closing(self) -> bytes:
        """See ``Dialect``."""
        return b""

    def broken(self, error: ApiError, message: str) -> bytes:
        """See ``Dialect``."""
        body = error.body()
        body["error"]["message"] = message
        return encode_event(body, name="error")
