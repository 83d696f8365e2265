"""Checks and clears the way for a unix socket."""

import os
import sys
from pathlib import Path

_MAX_PATH_BYTES = 107 if sys.platform == "linux" else 103
"""What ``sockaddr_un`` holds, less its closing NUL."""

MODE = 0o666
"""A sandbox's user is not ours, and who can reach the directory may call."""


def checked_socket_path(path: Path) -> Path:
    """Return a path where a socket can be made.

    Raises:
        ValueError: it is too long, its directory is missing, or something is there.
    """
    size = len(os.fsencode(path))
    if size > _MAX_PATH_BYTES:
        raise ValueError(
            f"unix socket path {str(path)!r} is {size} bytes long, the system takes "
            f"{_MAX_PATH_BYTES}; use a shorter directory"
        )
    if not path.parent.is_dir():
        raise ValueError(f"unix socket path {str(path)!r}: make its directory first")
    if os.path.lexists(path):
        raise ValueError(
            f"unix socket path {str(path)!r} exists already; remove it or choose another"
        )
    return path
