"""What a record needs to know of an answer, whichever API it is in."""

from typing import Any, Protocol

from osmosis_ai.common.model_calls import Usage
from osmosis_ai.gateway.recordfile import Body


class Accumulator(Protocol):
    """An answer that comes whole or grows event by event; its memory is bounded."""

    model: str | None
    usage: Usage | None
    error: str | None

    @property
    def finish_reason(self) -> str | None:
        """Why the answer ended; ``None`` while it has not."""
        ...

    def take(self, answer: dict[str, Any]) -> None:
        """Take an answer that was not streamed."""
        ...

    def add(self, event: dict[str, Any]) -> bool:
        """Take one event of a stream; return whether it carried content of the answer."""
        ...

    def body(self) -> Body:
        """What was streamed so far, in the shape of an answer that was not."""
        ...
