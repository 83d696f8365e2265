"""Reads what rollouts left on disk, without following a link anywhere."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from osmosis_ai.common.identifiers import is_single_path_segment

MAX_FILES = 10_000
_CHUNK = 256 * 1024
_TEXT = {".log", ".md", ".txt", ".csv", ".py", ".toml", ".yaml", ".yml"}
_IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"}


@dataclass(frozen=True)
class Found:
    """A regular file below a directory: its relative path, bytes, seconds since the epoch."""

    path: str
    size: int
    modified_at: float


@dataclass(frozen=True)
class OpenFile:
    """A file that is open, and how long it was when it was opened."""

    stream: BinaryIO
    size: int

    def close(self) -> None:
        """Close it; again does nothing."""
        self.stream.close()

    def chunks(self) -> Iterator[bytes]:
        """Its bytes, at most ``size`` of them."""
        left = self.size
        while left > 0 and (chunk := self.stream.read(min(_CHUNK, left))):
            left -= len(chunk)
            yield chunk


def open_below(root: Path, parts: tuple[str, ...]) -> OpenFile | None:
    """Open the regular file ``root/parts…``; ``None`` when there is none, or a link on the way."""
    if not parts or not all(is_single_path_segment(part) for part in parts):
        return None
    try:
        with _directory(root, parts[:-1]) as parent:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(parts[-1], flags, dir_fd=parent)
    except (OSError, ValueError):
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return None
    return OpenFile(os.fdopen(descriptor, "rb"), status.st_size)


def list_below(root: Path, parts: tuple[str, ...]) -> tuple[list[Found], bool] | None:
    """Regular files below ``root/parts…`` by path, and whether there are more than are listed."""
    if not all(is_single_path_segment(part) for part in parts):
        return None
    found: list[Found] = []
    try:
        with _directory(root, parts) as top:
            for path, _, names, directory in os.fwalk(dir_fd=top, follow_symlinks=False):
                for name in names:
                    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                    relative = str(PurePosixPath(path, name))
                    if stat.S_ISREG(status.st_mode) and _is_unicode(relative):
                        found.append(Found(relative, status.st_size, status.st_mtime))
                if len(found) > MAX_FILES:
                    break
    except FileNotFoundError:
        return (sorted(found, key=lambda f: f.path), False) if found else None
    except (OSError, ValueError):
        return None
    found.sort(key=lambda one: one.path)
    return found[:MAX_FILES], len(found) > MAX_FILES


def content_type(name: str) -> str:
    """A type that no browser runs."""
    suffix = PurePosixPath(name).suffix.lower()
    if suffix == ".json":
        return "application/json"
    if suffix in _TEXT:
        return "text/plain; charset=utf-8"
    return _IMAGES.get(suffix, "application/octet-stream")


CONTENT_TYPES = sorted(
    {"application/json", "text/plain", "application/octet-stream", *_IMAGES.values()}
)


@contextmanager
def _directory(root: Path, parts: tuple[str, ...]) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    descriptor = os.open(root, flags)
    try:
        for part in parts:
            inner = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _is_unicode(path: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in path)
