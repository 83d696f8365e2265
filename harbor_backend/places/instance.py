"""Which process of ours a sandbox belongs to, and whether that process lives."""

import atexit
import fcntl
import hashlib
import os
import platform
import uuid
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path


@cache
def instance_id() -> str:
    """Return this process's instance id; from now on its sandboxes are known to be alive.

    It reads ``<where>-<which>``: only a process of the same place (machine,
    process namespace, user's cache) can tell whether its owner lives.
    """
    identifier = f"{_place()}-{uuid.uuid4().hex[:8]}"
    _hold(identifier)
    return identifier


def is_ours_to_judge(identifier: str) -> bool:
    """Whether ``is_alive`` can know anything about an instance."""
    return identifier.startswith(f"{_place()}-") and "/" not in identifier


def is_alive(identifier: str) -> bool:
    """Whether the process with this instance id still runs."""
    path = _folder() / identifier
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    path.unlink(missing_ok=True)
    return False


def _hold(identifier: str) -> None:
    """Lock a file for as long as the process lives; the kernel lets go when it dies."""
    path = _folder() / identifier
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    atexit.register(path.unlink, missing_ok=True)


@cache
def _place() -> str:
    parts = (platform.node(), os.stat("/proc/self/ns/pid").st_ino, str(_folder()))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def _folder() -> Path:
    path = user_cache_path("osmosis") / "instances"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
