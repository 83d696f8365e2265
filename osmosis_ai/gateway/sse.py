"""Server-sent events, whole event by whole event."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from osmosis_ai.gateway.errors import UpstreamError

DONE = "[DONE]"
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LONGEST_END = 4


@dataclass(frozen=True)
class Event:
    """One event: its bytes as they came, and its data (``None`` for a comment)."""

    raw: bytes
    data: str | None

    def parsed(self) -> dict[str, Any] | None:
        """The JSON object in the data; ``None`` for comments and for the end mark.

        Raises:
            UpstreamError: the data is not a JSON object.
        """
        if self.data is None or self.data == DONE:
            return None
        try:
            value = json.loads(self.data)
        except (ValueError, RecursionError) as exc:
            raise _not_an_object(self.data) from exc
        if not isinstance(value, dict):
            raise _not_an_object(self.data)
        return value


def _not_an_object(data: str) -> UpstreamError:
    return UpstreamError(
        f"the upstream's stream holds an event that is not a JSON object: {data[:200]!r}",
        code="upstream_garbage",
    )


class EventReader:
    """Cuts a byte stream into events.

    An event is passed on the moment it is complete. A partial one is held back, so a
    stream that breaks can still end in an event that the client understands.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self._max_event_bytes = max_event_bytes
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that ``chunk`` completes.

        Raises:
            UpstreamError: an event grew past ``max_event_bytes``, or is not UTF-8.
        """
        self._buffer += chunk
        while end := _EVENT_END.search(self._buffer, self._searched):
            self._check_size(end.end())
            raw = bytes(self._buffer[: end.end()])
            del self._buffer[: end.end()]
            self._searched = 0
            yield _event(raw)
        self._searched = max(0, len(self._buffer) - _LONGEST_END + 1)
        self._check_size(len(self._buffer))

    def finish(self) -> Iterator[Event]:
        """Yield what an upstream that ended in good order left without a blank line."""
        if self._buffer.strip():
            yield _event(bytes(self._buffer) + b"\n\n")
        self._buffer.clear()

    def _check_size(self, size: int) -> None:
        if size > self._max_event_bytes:
            raise UpstreamError(
                f"the upstream sent an event of more than {self._max_event_bytes} bytes "
                "(GatewayLimits.max_response_bytes)",
                code="upstream_too_large",
                limit="max_response_bytes",
            )


def encode_event(value: dict[str, Any], *, name: str | None = None) -> bytes:
    """One event with a JSON object as its data."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


def _event(raw: bytes) -> Event:
    if raw.startswith(b"data:") and raw.find(b"\n") == len(raw) - 2 and b"\r" not in raw:
        return Event(raw, _decoded(raw[5:]).strip())
    # Not splitlines(): JSON may hold U+2028 and its kin unescaped.
    lines = re.split(r"\r\n|\n|\r", _decoded(raw))
    data = [line[5:].removeprefix(" ") for line in lines if line.startswith("data:")]
    return Event(raw, "\n".join(data).strip() if data else None)


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise UpstreamError(
            f"the upstream's stream holds an event that is not UTF-8: {exc}",
            code="upstream_garbage",
        ) from exc
