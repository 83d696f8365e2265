"""Chunks of a chat completion as the events of a streamed Response."""

from collections.abc import Iterator
from typing import Any

from osmosis_ai.common.model_calls import Usage
from osmosis_ai.gateway.errors import UpstreamError
from osmosis_ai.gateway.jsonvalues import nonempty, objects
from osmosis_ai.gateway.responses.output import (
    empty_response,
    ended,
    logprobs_of,
    new_id,
    reasoning_text,
)
from osmosis_ai.gateway.responses.parts import (
    CallPart,
    OpenItem,
    ReasoningPart,
    RefusalPart,
    TextPart,
)

type Emit = dict[str, Any]

_ITEM_CHARS = 64
"""What a new item counts, so that many empty ones are bounded too."""


class ResponseStream:
    """Turns chunks into events in the order in which OpenAI's server sends them.

    One message or reasoning item is open at a time; function calls stay open until the
    end, because their pieces may come interleaved.
    """

    def __init__(self, request: dict[str, Any], max_chars: int) -> None:
        self._request = request
        self._room = max_chars
        self._response: dict[str, Any] | None = None
        self._items: list[OpenItem] = []
        self._current: OpenItem | None = None
        self._calls: dict[int, CallPart] = {}
        self._number = 0
        self._over = False

    @property
    def next_number(self) -> int:
        """The ``sequence_number`` of the next event."""
        return self._number

    def feed(self, chunk: dict[str, Any]) -> Iterator[Emit]:
        """Yield the events that a chunk of the chat completion causes.

        Raises:
            UpstreamError: the answer, whose end repeats it whole, is larger than allowed.
        """
        yield from map(self._numbered, self._begin(nonempty(chunk.get("model"))))
        for choice in objects(chunk.get("choices")):
            if choice.get("index", 0) == 0 and isinstance(delta := choice.get("delta"), dict):
                yield from map(self._numbered, self._delta(delta, logprobs_of(choice)))

    def end(self, finish_reason: str | None, usage: Usage | None) -> Iterator[Emit]:
        """Yield what closes the open items and the Response; nothing the second time."""
        if self._over:
            return
        self._over = True
        yield from map(self._numbered, self._begin(None))
        yield from map(self._numbered, self._close_all())
        assert self._response is not None
        done = ended(
            self._response, [item.finished() for item in self._items], finish_reason, usage
        )
        yield self._numbered({"type": f"response.{done['status']}", "response": done})

    def _begin(self, model: str | None) -> Iterator[Emit]:
        if self._response is not None:
            return
        self._response = empty_response(self._request, model)
        yield {"type": "response.created", "response": self._response}
        yield {"type": "response.in_progress", "response": self._response}

    def _delta(self, delta: dict[str, Any], logprobs: list[Any]) -> Iterator[Emit]:
        if said := reasoning_text(delta):
            yield from self._say(ReasoningPart, said, [])
        if said := nonempty(delta.get("content")):
            yield from self._say(TextPart, said, logprobs)
        if said := nonempty(delta.get("refusal")):
            yield from self._say(RefusalPart, said, [])
        for call in objects(delta.get("tool_calls")):
            yield from self._call(call)

    def _say(
        self,
        kind: type[TextPart] | type[ReasoningPart] | type[RefusalPart],
        said: str,
        logprobs: list[Any],
    ) -> Iterator[Emit]:
        if not isinstance(self._current, kind):
            yield from self._close_current()
            self._current = kind(len(self._items))
            self._items.append(self._current)
            self._spend(_ITEM_CHARS)
            yield from self._current.opening()
        self._spend(len(said))
        yield self._current.delta(said, logprobs)

    def _call(self, call: dict[str, Any]) -> Iterator[Emit]:
        index = call.get("index")
        key = index if isinstance(index, int) else 0
        function = call.get("function")
        said = function if isinstance(function, dict) else {}
        if key not in self._calls:
            yield from self._close_current()
            part = CallPart(
                len(self._items),
                nonempty(call.get("id")) or new_id("call"),
                str(said.get("name") or ""),
            )
            self._calls[key] = part
            self._items.append(part)
            self._spend(_ITEM_CHARS)
            yield from part.opening()
        if arguments := nonempty(said.get("arguments")):
            self._spend(len(arguments))
            yield self._calls[key].delta(arguments, [])

    def _close_current(self) -> Iterator[Emit]:
        if self._current is not None:
            yield from self._current.closing()
            self._current = None

    def _close_all(self) -> Iterator[Emit]:
        yield from self._close_current()
        for part in self._calls.values():
            yield from part.closing()

    def _spend(self, chars: int) -> None:
        self._room -= chars
        if self._room < 0:
            raise UpstreamError(
                "the upstream's answer is larger than GatewayLimits.max_response_bytes",
                code="upstream_too_large",
                retry=False,
                limit="max_response_bytes",
            )

    def _numbered(self, event: Emit) -> Emit:
        event["sequence_number"] = self._number
        self._number += 1
        return event
