"""Moving trees between host and sandbox without trusting what is in them."""

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmosis_ai.rollout.container.supervisor.transfer import MAX_DEPTH

_MAX_NAME = MAX_DEPTH * 256
_CHUNK = 256 * 1024
_DIR_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class UnsafeEntryError(ValueError):
    """A sandbox sent an entry that would leave its target directory."""


@dataclass(frozen=True)
class LocalEntry:
    """One entry of a local tree: its frame header and, for a file, where its bytes are."""

    header: dict[str, Any]
    source: Path | None = None

    def chunks(self) -> Iterator[bytes]:
        """Yield the file's bytes."""
        if self.source is None:
            return
        with self.source.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk


def local_entries(source: Path) -> Iterator[LocalEntry]:
    """Yield a local file or tree in the order that a receiver needs.

    Links go as links; their targets are not read.

    Raises:
        FileNotFoundError: ``source`` does not exist.
    """
    if not source.is_dir():
        mode = stat.S_IMODE(source.stat().st_mode) & 0o777
        yield LocalEntry({"name": "", "kind": "file", "mode": mode}, source)
        return
    yield LocalEntry({"name": "", "kind": "dir", "mode": 0o755})
    for folder, folders, files in os.walk(source, followlinks=False):
        for name in [*sorted(folders), *sorted(files)]:
            path = Path(folder, name)
            info = path.lstat()
            header = {
                "name": path.relative_to(source).as_posix(),
                "mode": stat.S_IMODE(info.st_mode) & 0o777,
            }
            if stat.S_ISLNK(info.st_mode):
                yield LocalEntry({**header, "kind": "link", "target": os.readlink(path)})
            elif stat.S_ISDIR(info.st_mode):
                yield LocalEntry({**header, "kind": "dir"})
            elif stat.S_ISREG(info.st_mode):
                yield LocalEntry({**header, "kind": "file"}, path)


class TreeWriter:
    """Writes entries that a sandbox sent at or below ``target``, following no link.

    A link is kept only when its target is relative and never climbs, so it
    cannot lead out of the tree; others are counted in ``refused_links``.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._file: int | None = None
        self.refused_links = 0

    def entry(self, header: dict[str, Any]) -> None:
        """Begin the next entry.

        Raises:
            UnsafeEntryError: its name is absolute, climbs, or is no name.
            OSError: it cannot be written, or passes through a link.
        """
        self.close()
        name, kind, mode = header["name"], header["kind"], int(header["mode"]) & 0o777
        if not isinstance(name, str) or len(name) > _MAX_NAME or "\0" in name:
            raise UnsafeEntryError(f"a sandbox sent an entry with the name {name!r}")
        parts = name.split("/") if name else []
        if any(part in {"", ".", ".."} for part in parts):
            raise UnsafeEntryError(f"a sandbox sent an entry that leaves its directory: {name!r}")
        if len(parts) > MAX_DEPTH:  # more would exhaust the recursion of whoever walks it later
            raise UnsafeEntryError(f"a sandbox sent an entry {len(parts)} directories deep")
        if kind == "dir":
            os.close(self._folder(parts))
            return
        parent = self._folder(parts[:-1]) if parts else self._root(self._target.parent)
        leaf = parts[-1] if parts else self._target.name
        try:
            _clear(leaf, parent)
            if kind == "link":
                self._link(str(header["target"]), leaf, parent)
            elif kind == "file":
                # Readable and writable by us, whatever the sandbox said.
                self._file = os.open(leaf, _FILE_FLAGS, mode | 0o600, dir_fd=parent)
            else:
                raise UnsafeEntryError(f"a sandbox sent an entry of the kind {kind!r}")
        finally:
            os.close(parent)

    def data(self, payload: bytes) -> None:
        """Append to the file that was begun last."""
        if self._file is None:
            raise UnsafeEntryError("a sandbox sent data that belongs to no file")
        view = memoryview(payload)
        while view:
            view = view[os.write(self._file, view) :]

    def close(self) -> None:
        """End the entry that was begun last."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _root(self, path: Path) -> int:
        path.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _folder(self, parts: list[str]) -> int:
        folder = self._root(self._target)
        for part in parts:
            # What is there already is opened below, where a link or a file is refused.
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=folder)
            try:
                inner = os.open(part, _DIR_FLAGS, dir_fd=folder)
            finally:
                os.close(folder)
            folder = inner
        return folder

    def _link(self, target: str, leaf: str, parent: int) -> None:
        parts = target.split("/")
        if target.startswith("/") or ".." in parts or "\0" in target or not target:
            self.refused_links += 1
            return
        os.symlink(target, leaf, dir_fd=parent)


def _clear(leaf: str, parent: int) -> None:
    try:
        os.unlink(leaf, dir_fd=parent)
    except FileNotFoundError:
        return
