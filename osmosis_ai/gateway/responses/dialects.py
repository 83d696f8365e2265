"""The Responses API on the agent's side."""

import json
from collections.abc import Iterable
from typing import Any

from osmosis_ai.common.model_calls import Api
from osmosis_ai.gateway.capture import RequestBody
from osmosis_ai.gateway.chatanswer import ChatAnswer
from osmosis_ai.gateway.errors import ApiError
from osmosis_ai.gateway.limits import GatewayLimits
from osmosis_ai.gateway.responses.answer import NativeAnswer
from osmosis_ai.gateway.responses.output import to_response
from osmosis_ai.gateway.responses.stream import ResponseStream
from osmosis_ai.gateway.sse import DONE, Event, encode_event


class NativeDialect:
    """Responses on both sides: bytes pass as they are."""

    api: Api = "responses"
    resource = "responses"

    def __init__(self, request: RequestBody) -> None:
        self.request = request
        self.answer = NativeAnswer()

    def ends(self, event: Event) -> bool:
        """See ``Dialect``."""
        return self.answer.finish_reason is not None

    def whole(self, body: bytes, answer: dict[str, Any]) -> bytes:
        """See ``Dialect``."""
        return body

    def passed(self, event: Event, chunk: dict[str, Any] | None) -> bytes:
        """See ``Dialect``."""
        return event.raw

    def closing(self) -> bytes:
        """See ``Dialect``."""
        return b""

    def broken(self, error: ApiError, message: str) -> bytes:
        """See ``Dialect``."""
        return _error_event(error, message, 0)


class TranslatedDialect:
    """Responses for the agent, chat completions upstream."""

    api: Api = "responses_as_chat"
    resource = "chat/completions"

    def __init__(
        self, request: RequestBody, agent_payload: dict[str, Any], limits: GatewayLimits
    ) -> None:
        self.request = request
        self.answer = ChatAnswer(limits.max_record_bytes)
        self._agent_payload = agent_payload
        self._stream = ResponseStream(agent_payload, limits.max_response_bytes)

    def ends(self, event: Event) -> bool:
        """See ``Dialect``."""
        return event.data == DONE

    def whole(self, body: bytes, answer: dict[str, Any]) -> bytes:
        """See ``Dialect``."""
        if answer.get("error"):
            return body
        return json.dumps(to_response(self._agent_payload, answer, self.answer.usage)).encode()

    def passed(self, event: Event, chunk: dict[str, Any] | None) -> bytes:
        """See ``Dialect``."""
        if chunk is None:
            # An end mark ends the Response; a comment keeps the connection alive.
            return self.closing() if event.data == DONE else event.raw
        if chunk.get("error"):
            return event.raw
        return _encoded(self._stream.feed(chunk))

    def closing(self) -> bytes:
        """See ``Dialect``."""
        if self.answer.finish_reason is None:
            return b""
        return _encoded(self._stream.end(self.answer.finish_reason, self.answer.usage))

    def broken(self, error: ApiError, message: str) -> bytes:
        """See ``Dialect``."""
        return _error_event(error, message, self._stream.next_number)


def _encoded(events: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(encode_event(event, name=event["type"]) for event in events)


def _error_event(error: ApiError, message: str, number: int) -> bytes:
    # The fields of OpenAI's error event, and the object that its client looks for.
    body = error.body()
    body["error"]["message"] = message
    event = {
        "type": "error",
        "code": error.code,
        "message": message,
        "param": None,
        "sequence_number": number,
    }
    return encode_event(event | body, name="error")
