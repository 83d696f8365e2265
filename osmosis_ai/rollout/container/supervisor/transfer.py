"""Writing what the host sends, and sending what it asks for."""

import json
import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .frames import CHUNK, DATA, ENTRY, INNER, MANY

if TYPE_CHECKING:
    from io import FileIO

type Send = Callable[[int, bytes], None]

MAX_DEPTH = 128
_BATCH = 16 * 1024
# An agent may put anything where a file is to go, also while we look: opening must never wait.
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK


class Upload:
    """Writes the entries that the host sends at or below one path, as root."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.file: FileIO | None = None

    def entry(self, entry: dict[str, Any]) -> None:
        """Begin the next entry: a directory, a link, or a file whose data follows."""
        self.close()
        name = entry["name"]
        path = os.path.join(self.base, name) if name else self.base
        if entry["kind"] == "dir":
            os.makedirs(path, exist_ok=True)
            if name:
                os.chmod(path, entry["mode"])
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path) and (entry["kind"] == "link" or not _is_plain(path)):
            os.unlink(path)
        if entry["kind"] == "link":
            os.symlink(entry["target"], path)
            return
        fd = os.open(path, _WRITE, 0o600)
        self.file = open(fd, "wb", buffering=0)  # noqa: SIM115 (closed by the next entry)
        os.fchmod(fd, entry["mode"])

    def data(self, payload: bytes) -> None:
        """Append to the file that was begun last."""
        view = memoryview(payload)
        while view and self.file is not None:
            view = view[self.file.write(view) or 0 :]

    def close(self) -> None:
        """End the entry that was begun last."""
        if self.file is not None:
            self.file.close()
            self.file = None


class Batch:
    """Sends small frames together: a tree of small files would take one system call for each."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._pending = bytearray()

    def add(self, kind: int, payload: bytes) -> None:
        """Send a frame, at the latest with ``flush``; order is kept."""
        if len(payload) > _BATCH:
            self.flush()
            self._send(kind, payload)
            return
        self._pending += INNER.pack(kind, len(payload)) + payload
        if len(self._pending) > _BATCH:
            self.flush()

    def flush(self) -> None:
        """Send what is pending."""
        if self._pending:
            self._send(MANY, bytes(self._pending))
            self._pending.clear()


class Download:
    """Sends a file or a tree within a budget of bytes and entries."""

    def __init__(self, send: Send, max_bytes: int, max_entries: int) -> None:
        self.send = send
        self.max_bytes = self.bytes_left = max_bytes
        self.max_entries = self.entries_left = max_entries
        self.skipped = 0

    def tree(self, path: str) -> None:
        """Send ``path``; links go as links, special files and what is very deep are skipped.

        Raises:
            OSError: the path does not exist or cannot be read.
            ValueError: the budget is exceeded.
        """
        pending = [(path, "", 0)]
        while pending:
            current, name, depth = pending.pop()
            try:
                children = self._one(current, name)
            except OSError:
                if not name:
                    raise
                self.skipped += 1  # it vanished since it was listed, or is not readable
                continue
            if depth == MAX_DEPTH:
                self.skipped += len(children)
                continue
            pending += [
                (f"{current}/{child}", f"{name}/{child}" if name else child, depth + 1)
                for child in reversed(children)
            ]

    def _one(self, path: str, name: str) -> list[str]:
        """Send one entry; returns the names in it if it is a directory."""
        info = os.lstat(path) if name else os.stat(path)
        self.entries_left -= 1
        if self.entries_left < 0:
            raise ValueError(f"more than {self.max_entries} entries")
        entry: dict[str, Any] = {"name": name, "mode": stat.S_IMODE(info.st_mode) & 0o777}
        if stat.S_ISDIR(info.st_mode):
            self._begin(entry, "dir")
            return sorted(os.listdir(path))
        if stat.S_ISLNK(info.st_mode):
            self._begin({**entry, "target": os.readlink(path)}, "link")
        elif stat.S_ISREG(info.st_mode):
            self._file(path, entry, follow=not name)
        else:
            self.skipped += 1
        return []

    def _begin(self, entry: dict[str, Any], kind: str) -> None:
        self.send(ENTRY, json.dumps({**entry, "kind": kind}).encode())

    def _file(self, path: str, entry: dict[str, Any], *, follow: bool) -> None:
        # A path may have been swapped since lstat: neither a link nor a pipe is to be opened.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
        with open(fd, "rb", buffering=0) as file:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                self.skipped += 1
                return
            self._begin(entry, "file")
            # A buffer of the file's size: most are small. Some do not tell theirs.
            while chunk := file.read(min(4 * CHUNK, max(info.st_size, CHUNK // 16) + 1)):
                self.bytes_left -= len(chunk)
                if self.bytes_left < 0:
                    raise ValueError(f"more than {self.max_bytes} bytes")
                self.send(DATA, chunk)


def _is_plain(path: str) -> bool:
    mode = os.lstat(path).st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
