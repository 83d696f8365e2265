"""Reading files that a trial left: whole, or not at all."""

import json
import os
import stat
from pathlib import Path
from typing import Any

MAX_BYTES = 64 * 1024 * 1024
"""The largest document that is read."""


class UnreadableError(ValueError):
    """A file is there and is nothing that can be read; the text names it and says why."""


def read_file(path: Path) -> bytes | None:
    """The bytes of a regular file, no link; ``None`` where there is nothing.

    Raises:
        UnreadableError: it is no regular file, or too large.
        OSError: it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError(f"{path.name} is not a regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UnreadableError(f"{path.name} holds more than {MAX_BYTES} bytes")
    return content


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; ``None`` where there is no file.

    Raises:
        UnreadableError: it holds no JSON object.
        OSError: it cannot be read.
    """
    content = read_file(path)
    if content is None:
        return None
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as exc:
        raise UnreadableError(f"{path.name} is not JSON: {exc}") from exc
    if not isinstance(document, dict):
        raise UnreadableError(f"{path.name} is not a JSON object")
    return document


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object; an empty one otherwise."""
    return value if isinstance(value, dict) else {}


def objects_in(value: Any) -> list[dict[str, Any]]:
    """The JSON objects in a list; none where it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
