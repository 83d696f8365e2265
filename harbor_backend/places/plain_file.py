"""Reading a file that a sandbox may have written, or put something else in its place."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotPlainError(ValueError):
    """It is no regular file of the size that is read; the text says what it is."""


def open_plain(path: Path) -> BinaryIO:
    """Open a regular file, following no link and waiting for nobody.

    Raises:
        FileNotFoundError, OSError: it is not there, or cannot be read.
        NotPlainError: it is a link, a directory, a pipe, a socket or a device.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            raise
        raise NotPlainError(f"is {_kind(mode)}, not a regular file") from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise NotPlainError(f"is {_kind(mode)}, not a regular file")


def read_plain(path: Path, max_bytes: int) -> bytes:
    """Read a whole regular file; see ``open_plain``.

    Raises:
        NotPlainError: it also holds more than ``max_bytes``, of which none is read.
    """
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > max_bytes else file.read(max_bytes + 1)
        if (size := max(size, len(data))) > max_bytes:
            raise NotPlainError(f"holds {size} bytes, and at most {max_bytes} are read")
        return data


def read_end(path: Path, max_bytes: int) -> bytes:
    """The last bytes of a regular file; see ``open_plain``."""
    with open_plain(path) as file:
        file.seek(max(os.fstat(file.fileno()).st_size - max_bytes, 0))
        return file.read(max_bytes)


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    return "a directory" if stat.S_ISDIR(mode) else "a pipe, socket or device"
