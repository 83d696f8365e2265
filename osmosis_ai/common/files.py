"""Writing a file whole or not at all."""

import os
import uuid
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader, or a crash, sees the old file or the whole new one.

    Raises:
        OSError: it could not be written; the old file is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("x", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":  # a directory cannot be opened there; its journal does the same
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
