"""Directories for the sockets between host and sandbox."""

import os
import tempfile
from pathlib import Path

# A unix socket's path holds at most 107 bytes.
_MAX_PARENT = 60


def make_channel_dir() -> Path:
    """Make a directory that a sandbox can enter and other users of this machine cannot reach.

    Raises:
        PermissionError: somebody else owns its parent, or can reach into it.
    """
    path = Path(tempfile.mkdtemp(prefix="s-", dir=private_dir()))
    path.chmod(0o755)
    return path


def private_dir() -> Path:
    """Return this user's own directory for sockets and locks.

    Raises:
        PermissionError: somebody else owns it, or can reach into it.
    """
    parent = Path(tempfile.gettempdir(), f"osmosis-{os.getuid()}")
    if len(str(parent)) > _MAX_PARENT:
        parent = Path("/tmp", parent.name)
    parent.mkdir(mode=0o700, exist_ok=True)
    info = parent.lstat()
    if parent.is_symlink() or info.st_uid != os.getuid() or info.st_mode & 0o077:
        raise PermissionError(f"{parent} must be a directory of this user alone (mode 0700)")
    return parent
