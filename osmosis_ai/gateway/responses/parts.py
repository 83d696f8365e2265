"""Output items of a streamed Response while they grow, and the events of their life."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from io import StringIO
from typing import Any

from osmosis_ai.gateway.responses.output import (
    call_item,
    message_item,
    new_id,
    reasoning_item,
    text_part,
)

type Emit = dict[str, Any]


class OpenItem(ABC):
    """An item that still grows."""

    def __init__(self, output_index: int, kind: str) -> None:
        self.id = new_id(kind)
        self._output_index = output_index
        self._text = StringIO()

    @abstractmethod
    def opening(self) -> Iterator[Emit]:
        """What comes before the first delta."""

    @abstractmethod
    def delta(self, text: str, logprobs: list[Any]) -> Emit:
        """Take a piece and say so."""

    @abstractmethod
    def closing(self) -> Iterator[Emit]:
        """What comes after the last delta."""

    @abstractmethod
    def finished(self) -> dict[str, Any]:
        """The whole item."""

    def _event(self, kind: str, **fields: Any) -> Emit:
        return {
            "type": f"response.{kind}",
            "item_id": self.id,
            "output_index": self._output_index,
            **fields,
        }

    def _item_event(self, kind: str, item: dict[str, Any]) -> Emit:
        return {
            "type": f"response.output_item.{kind}",
            "output_index": self._output_index,
            "item": item,
        }


class TextPart(OpenItem):
    """A message with text."""

    def __init__(self, output_index: int) -> None:
        super().__init__(output_index, "msg")
        self._logprobs: list[Any] = []

    def opening(self) -> Iterator[Emit]:
        """See ``OpenItem``."""
        yield self._item_event("added", message_item([], self.id, "in_progress"))
        yield self._event("content_part.added", content_index=0, part=text_part("", []))

    def delta(self, text: str, logprobs: list[Any]) -> Emit:
        """See ``OpenItem``."""
        self._text.write(text)
        self._logprobs += logprobs
        return self._event("output_text.delta", content_index=0, delta=text, logprobs=logprobs)

    def closing(self) -> Iterator[Emit]:
        """See ``OpenItem``."""
        text = self._text.getvalue()
        yield self._event("output_text.done", content_index=0, text=text, logprobs=self._logprobs)
        part = text_part(text, self._logprobs)
        yield self._event("content_part.done", content_index=0, part=part)
        yield self._item_event("done", self.finished())

    def finished(self) -> dict[str, Any]:
        """See ``OpenItem``."""
        part = text_part(self._text.getvalue(), self._logprobs)
        return message_item([part], self.id, "completed")


class RefusalPart(OpenItem):
    """A message that refuses."""

    def __init__(self, output_index: int) -> None:
        super().__init__(output_index, "msg")

    def opening(self) -> Iterator[Emit]:
        """See ``OpenItem``."""
        yield self._item_event("added", message_item([], self.id, "in_progress"))
        part = {"type": "refusal", "refusal": ""}
        yield self._event("content_part.added", content_index=0, part=part)

    def delta(self, text: str, logprobs: list[Any]) -> Emit:
        """See ``OpenItem``."""
        self._text.write(text)
        return self._event("refusal.delta", content_index=0, delta=text)

    def closing(self) -> Iterator[Emit]:
        """See ``OpenItem``."""
        text = self._text.getvalue()
        yield self._event("refusal.done", content_index=0, refusal=text)
        part = {"type": "refusal", "refusal": text}
        yield self._event("content_part.done", content_index=0, part=part)
        yield self._item_event("done", self.finished())

    def finished(self) -> dict[str, Any]:
        """See ``OpenItem``."""
        part = {"type": "refusal", "refusal": self._text.getvalue()}
        return message_item([part], self.id, "completed")


class ReasoningPart(OpenItem):
    """Reasoning in plain text."""

    def __init__(self, output_index: int) -> None:
        super().__init__(output_index, "rs")

    def opening(self) -> Iterator[Emit]:
        """See ``OpenItem``."""
        begun = {"id": self.id, "type": "reasoning", "summary": [], "content": []}
        yield self._item_event("added", begun | {"status": "in_progress"})
        part = {"type": "reasoning_text", "text": ""}
        yield self._event("content_part.added", content_index=0, part=part)

    def delta(self, text: str, logprobs: list[Any]) -> Emit:
        """See ``OpenItem``."""
        self._text.write(text)
        return self._event("reasoning_text.delta", content_index=0, delta=text)

    def closing(self) -> Iterator[Emit]:
        """See ``OpenItem``."""
        text = self._text.getvalue()
        yield self._event("reasoning_text.done", content_index=0, text=text)
        part = {"type": "reasoning_text", "text": text}
        yield self._event("content_part.done", content_index=0, part=part)
        yield self._item_event("done", self.finished())

    def finished(self) -> dict[str, Any]:
        """See ``OpenItem``."""
        return reasoning_item(self._text.getvalue(), self.id)


class CallPart(OpenItem):
    """A function call."""

    def __init__(self, output_index: int, call_id: str, name: str) -> None:
        super().__init__(output_index, "fc")
        self._call_id = call_id
        self._name = name

    def opening(self) -> Iterator[Emit]:
        """See ``OpenItem``."""
        begun = call_item(self.id, self._call_id, self._name, "", "in_progress")
        yield self._item_event("added", begun)

    def delta(self, text: str, logprobs: list[Any]) -> Emit:
        """See ``OpenItem``."""
        self._text.write(text)
        return self._event("function_call_arguments.delta", delta=text)

    def closing(self) -> Iterator[Emit]:
        """See ``OpenItem``."""
        arguments = self._text.getvalue()
        yield self._event("function_call_arguments.done", name=self._name, arguments=arguments)
        yield self._item_event("done", self.finished())

    def finished(self) -> dict[str, Any]:
        """See ``OpenItem``."""
        return call_item(self.id, self._call_id, self._name, self._text.getvalue(), "completed")
