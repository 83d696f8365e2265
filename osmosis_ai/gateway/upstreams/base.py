"""The boundary between the gateway and whatever answers."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from osmosis_ai.gateway.headers import Headers


@dataclass(frozen=True)
class UpstreamCall:
    """One request as the agent meant it.

    Attributes:
        method: ``GET`` or ``POST``.
        resource: below the base URL, such as ``chat/completions``.
        query: the agent's raw query string.
        headers: already without credentials and hop-by-hop headers.
        body: the bytes to send.
        payload: the same, parsed; empty for ``GET``.
    """

    method: str
    resource: str
    query: str = ""
    headers: Headers = field(default_factory=list)
    body: bytes = b""
    payload: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class UpstreamReply:
    """An answer whose body is still to come; reading it may raise ``UpstreamError``."""

    status: int
    headers: Headers
    body: AsyncIterator[bytes]

    @property
    def is_event_stream(self) -> bool:
        """Whether the body is a stream of server-sent events."""
        return any(
            name.lower() == "content-type" and value.lower().startswith("text/event-stream")
            for name, value in self.headers
        )


class Upstream(Protocol):
    """Something that answers OpenAI-style calls.

    Attributes:
        serves_responses: whether it has the Responses API; ``None`` until somebody asked.
    """

    serves_responses: bool | None

    def send(self, call: UpstreamCall) -> AbstractAsyncContextManager[UpstreamReply]:
        """Ask; leaving the block ends the call, whether its body was read or not.

        Raises:
            UpstreamError: there was no answer, or none that may be passed on.
        """
        ...
