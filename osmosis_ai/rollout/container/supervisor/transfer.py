"""Writing what the host sends, and sending what it asks for."""

import json
import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .frames import CHUNK, DATA, ENTRY

if TYPE_CHECKING:
    from io import FileIO

type Send = Callable[[int, bytes], None]


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
        if os.path.islink(path) or (entry["kind"] == "link" and os.path.lexists(path)):
            os.unlink(path)
        if entry["kind"] == "link":
            os.symlink(entry["target"], path)
            return
        self.file = open(path, "wb", buffering=0)  # noqa: SIM115 (closed by the next entry)
        os.fchmod(self.file.fileno(), entry["mode"])

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


class Download:
    """Sends a file or a tree within a budget of bytes and entries."""

    def __init__(self, send: Send, max_bytes: int, max_entries: int) -> None:
        self.send = send
        self.max_bytes = self.bytes_left = max_bytes
        self.max_entries = self.entries_left = max_entries
        self.skipped = 0

    def tree(self, path: str, name: str = "") -> None:
        """Send ``path`` as ``name``; links go as links, special files are skipped.

        Raises:
            OSError: the path does not exist or cannot be read.
            ValueError: the budget is exceeded.
        """
        info = os.lstat(path) if name else os.stat(path)
        self.entries_left -= 1
        if self.entries_left < 0:
            raise ValueError(f"more than {self.max_entries} entries")
        entry: dict[str, Any] = {"name": name, "mode": stat.S_IMODE(info.st_mode) & 0o777}
        if stat.S_ISDIR(info.st_mode):
            self._begin(entry, "dir")
            for child in sorted(os.listdir(path)):
                self.tree(f"{path}/{child}", f"{name}/{child}" if name else child)
        elif stat.S_ISLNK(info.st_mode):
            self._begin({**entry, "target": os.readlink(path)}, "link")
        elif stat.S_ISREG(info.st_mode):
            self._file(path, entry)
        else:
            self.skipped += 1

    def _begin(self, entry: dict[str, Any], kind: str) -> None:
        self.send(ENTRY, json.dumps({**entry, "kind": kind}).encode())

    def _file(self, path: str, entry: dict[str, Any]) -> None:
        # A path may have been swapped since lstat: neither a link nor a pipe is to be opened.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                self.skipped += 1
                return
            self._begin(entry, "file")
            while chunk := file.read(4 * CHUNK):
                self.bytes_left -= len(chunk)
                if self.bytes_left < 0:
                    raise ValueError(f"more than {self.max_bytes} bytes")
                self.send(DATA, chunk)
