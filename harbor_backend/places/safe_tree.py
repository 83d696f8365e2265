"""Moving trees between host and sandbox without trusting what is in them."""

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harbor_backend.places.plain_file import open_plain
from osmosis_ai.rollout.container.supervisor.transfer import MAX_DEPTH

SPECIAL = "special"
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
    size: int = 0

    def chunks(self) -> Iterator[bytes]:
        """Yield the file's bytes.

        Raises:
            NotPlainError: something else lies in its place by now.
        """
        if self.source is None:
            return
        with open_plain(self.source) as file:
            while chunk := file.read(_CHUNK):
                yield chunk


def local_entries(source: Path) -> Iterator[LocalEntry]:
    """Yield a local file or tree in the order that a receiver needs.

    A link to ``source`` is followed; links in it go as links, and their targets
    are not read. Special files are left out.

    Raises:
        FileNotFoundError: ``source`` does not exist.
    """
    top = source.resolve(strict=True)
    return (entry for entry in tree_entries(top) if entry.header["kind"] != SPECIAL)


def tree_entries(source: Path) -> Iterator[LocalEntry]:
    """Yield what lies at ``source`` and below, following no link; see ``local_entries``.

    A special file is an entry, too, of the kind ``SPECIAL``.
    """
    first = _entry(source, "")
    yield first
    if first.header["kind"] != "dir":
        return
    for folder, folders, files in os.walk(source, onerror=_raised, followlinks=False):
        inside = Path(folder).relative_to(source).as_posix()
        prefix = "" if inside == "." else f"{inside}/"
        for name in [*sorted(folders), *sorted(files)]:
            yield _entry(Path(folder, name), f"{prefix}{name}")


def _entry(path: Path, name: str) -> LocalEntry:
    info = path.lstat()
    header = {"name": name, "mode": stat.S_IMODE(info.st_mode) & 0o777}
    if stat.S_ISLNK(info.st_mode):
        return LocalEntry({**header, "kind": "link", "target": os.readlink(path)})
    if stat.S_ISDIR(info.st_mode):
        return LocalEntry({**header, "kind": "dir"})
    if stat.S_ISREG(info.st_mode):
        return LocalEntry({**header, "kind": "file"}, path, info.st_size)
    return LocalEntry({**header, "kind": SPECIAL})


def _raised(error: OSError) -> None:
    """A directory that cannot be listed is no empty one."""
    raise error


class TreeWriter:
    """Writes entries that a sandbox sent at or below ``target``, following no link.

    A link is kept only when its target is relative and climbs no higher than
    ``target``, so it cannot lead out of the tree; others are counted in
    ``refused_links``. As a context manager it leaves no file behind that was
    begun when the block failed: what is there is whole.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._file: int | None = None
        self._leaf = ""
        # The directory that was written to last: most entries follow one of the same.
        self._folder: tuple[list[str] | None, int] | None = None
        self.refused_links = 0

    def __enter__(self) -> "TreeWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._file is not None and self._folder is not None:
            os.unlink(self._leaf, dir_fd=self._folder[1])
        self.close()

    def entry(self, header: dict[str, Any]) -> None:
        """Begin the next entry.

        Raises:
            UnsafeEntryError: its name is absolute, climbs, or is no name.
            OSError: it cannot be written, or passes through a link.
        """
        self.end_file()
        name, kind, mode = header["name"], header["kind"], int(header["mode"]) & 0o777
        if not isinstance(name, str) or len(name) > _MAX_NAME or "\0" in name:
            raise UnsafeEntryError(f"a sandbox sent an entry with the name {name!r}")
        parts = name.split("/") if name else []
        if any(part in {"", ".", ".."} for part in parts):
            raise UnsafeEntryError(f"a sandbox sent an entry that leaves its directory: {name!r}")
        if len(parts) > MAX_DEPTH:  # more would exhaust the recursion of whoever walks it later
            raise UnsafeEntryError(f"a sandbox sent an entry {len(parts)} directories deep")
        if kind == "dir":
            self._open_folder(parts)
            return
        parent = self._open_folder(parts[:-1] if parts else None)
        self._leaf = parts[-1] if parts else self._target.name
        _clear(self._leaf, parent)
        if kind == "link":
            self._link(str(header["target"]), len(parts[:-1]), parent)
        elif kind == "file":
            # Readable and writable by us, whatever the sandbox said.
            self._file = os.open(self._leaf, _FILE_FLAGS, mode | 0o600, dir_fd=parent)
        else:
            raise UnsafeEntryError(f"a sandbox sent an entry of the kind {kind!r}")

    def data(self, payload: bytes) -> None:
        """Append to the file that was begun last."""
        if self._file is None:
            raise UnsafeEntryError("a sandbox sent data that belongs to no file")
        view = memoryview(payload)
        while view:
            view = view[os.write(self._file, view) :]

    def end_file(self) -> None:
        """Take the file that was begun last for whole."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def close(self) -> None:
        """End the entry that was begun last."""
        self.end_file()
        if self._folder is not None:
            os.close(self._folder[1])
            self._folder = None

    def _open_folder(self, parts: list[str] | None) -> int:
        """The directory of these parts below the target; of ``None`` the one that it lies in."""
        if self._folder is None or self._folder[0] != parts:
            opened = self._step_into(parts)
            if self._folder is not None:
                os.close(self._folder[1])
            self._folder = (parts, opened)
        return self._folder[1]

    def _step_into(self, parts: list[str] | None) -> int:
        if not parts:
            return _root(self._target.parent if parts is None else self._target)
        above = self._folder
        if above is not None and above[0] == parts[:-1]:
            return _inner(parts[-1], above[1])
        folder = _root(self._target)
        for part in parts:
            try:
                inner = _inner(part, folder)
            finally:
                os.close(folder)
            folder = inner
        return folder

    def _link(self, target: str, depth: int, parent: int) -> None:
        parts = target.split("/")
        climbs = next((i for i, part in enumerate(parts) if part != ".."), len(parts))
        # Once it has gone down, another link may have led it elsewhere: no ".." then.
        leaves = not target or target.startswith("/") or climbs > depth or ".." in parts[climbs:]
        if leaves or "\0" in target:
            self.refused_links += 1
            return
        os.symlink(target, self._leaf, dir_fd=parent)


def _root(path: Path) -> int:
    path.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _inner(name: str, folder: int) -> int:
    # What is there already is opened below, where a link or a file is refused.
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=folder)
    return os.open(name, _DIR_FLAGS, dir_fd=folder)


def _clear(leaf: str, parent: int) -> None:
    try:
        os.unlink(leaf, dir_fd=parent)
    except FileNotFoundError:
        return
