"""The file that a rollout's calls are appended to, and the bodies in it."""

import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmosis_ai.gateway.redaction import Redactor

_log = logging.getLogger(__name__)

_LONGEST_KEY = 8192
NOTHING = "null"


@dataclass(frozen=True)
class Body:
    """A request or a response on its way to the file.

    Attributes:
        raw: as it came; ``None`` for one that was put together here, within bounds.
        parsed: the JSON value, or the text of a body that is none.
    """

    raw: bytes | None
    parsed: Any

    def json_text(self, max_bytes: int, redact: Redactor) -> str:
        """One line of ASCII JSON: the body when it is small enough, else its head and size."""
        if self.raw is None:
            return json.dumps(self.parsed)
        if len(self.raw) > max_bytes:
            # Redact before cutting: half a key is no longer recognised, but still a leak.
            head = redact(self.raw[: max_bytes + _LONGEST_KEY].decode("utf-8", errors="replace"))
            cut = {"truncated": True, "bytes": len(self.raw), "head": head[:max_bytes]}
            return json.dumps(cut)
        if isinstance(self.parsed, str) or not _is_plain(self.raw):
            return json.dumps(self.parsed)
        return self.raw.decode("ascii")


def _is_plain(raw: bytes) -> bool:
    """Whether a JSON text is what ``json.dumps`` could have written in one line."""
    # An escape could hide a key from redaction, so what holds one is written anew.
    return raw.isascii() and b"\n" not in raw and b"\r" not in raw and b"\\u" not in raw


class RecordFile:
    """Appends lines to one endpoint's file until ``max_bytes`` are reached.

    A writer calls ``append`` from its thread; everything else is for the event loop.

    Attributes:
        error: why no more lines are written, or ``None``.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self.error: str | None = None

    def append(self, line: bytes) -> None:
        """Write one line, unless an earlier one could not be written."""
        if self.error is not None:
            return
        try:
            self._append(line)
        except OSError as exc:
            self.error = str(exc)
            _log.warning("calls are no longer written: %s", exc)

    def _append(self, line: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size + len(line) > self._max_bytes:
                raise OSError(
                    f"{self._path.name} is full: {size} bytes, "
                    f"GatewayLimits.max_records_bytes is {self._max_bytes}"
                )
            view = memoryview(line)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)
