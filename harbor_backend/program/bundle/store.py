"""Directories addressed by a key: built once, published whole, held while in use, pruned."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import platformdirs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path
    from types import TracebackType

logger = logging.getLogger(__name__)


def user_cache(kind: str, cache_dir: Path | None = None) -> Path:
    """Where entries of one kind live: under `cache_dir`, or the user's own cache."""
    return (cache_dir or platformdirs.user_cache_path("osmosis")) / kind


@dataclass
class Entry:
    """A published directory, held by a shared lock until `close()`: no prune removes it meanwhile.

    The lock is released when the handle is collected or the process ends, however it ends.
    """

    path: Path
    key: str
    _lock: int = field(repr=False)

    def close(self) -> None:
        """Let go of the directory; calling it twice is harmless."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True)
class Store:
    """A directory of entries `<key>/`, each with `<key>.lock` and `<key>.used` beside it.

    Safe for threads and processes on one machine. Entries are never written after publishing.
    """

    root: Path

    def acquire(self, key: str, build: Callable[[Path], None]) -> Entry:
        """The entry for `key`, held; `build(directory)` fills it first when nobody has before.

        `build` gets an empty directory in the same file system and raises when it cannot fill
        it; nothing is published then. Of two concurrent callers one builds and the other waits.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        while True:
            if (entry := self._hold(key)) is not None:
                return entry
            self._build(key, build)

    def _hold(self, key: str) -> Entry | None:
        lock = self._lock(key, fcntl.LOCK_SH)
        path = self.root / key
        if not path.is_dir():
            os.close(lock)
            return None
        (self.root / f"{key}.used").touch()
        return Entry(path, key, lock)

    def _build(self, key: str, build: Callable[[Path], None]) -> None:
        lock = self._lock(key, fcntl.LOCK_EX)
        staging = self.root / f".building-{key}"
        try:
            if (self.root / key).is_dir():
                return
            # Only the lock's holder builds, so what is there was left by a killed process.
            remove_tree(staging)
            staging.mkdir()
            build(staging)
            publish(staging, self.root / key)
        finally:
            remove_tree(staging)
            os.close(lock)

    def _lock(self, key: str, how: int) -> int:
        descriptor = os.open(
            self.root / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
        try:
            fcntl.flock(descriptor, how)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def keys(self) -> list[str]:
        """The keys of the published entries, least recently used first."""
        if not self.root.is_dir():
            return []
        names = [e.name for e in os.scandir(self.root) if e.is_dir() and e.name[0] != "."]
        return sorted(names, key=self.last_used)

    def last_used(self, key: str) -> float:
        """When the entry was last acquired, in seconds since the epoch."""
        for path in (self.root / f"{key}.used", self.root / key):
            if path.exists():
                return path.stat().st_mtime
        return 0.0

    def prune(
        self,
        *,
        max_age_days: float = 30,
        max_bytes: int = 20 * 2**30,
        keep: Collection[str] = (),
    ) -> list[str]:
        """Remove entries unused for `max_age_days`, then the oldest until `max_bytes` remain.

        Never removes a key in `keep`, nor an entry that any living process holds. Returns the
        removed keys, each of which is logged.
        """
        keys = self.keys()
        files = {key: _files(self.root / key) for key in keys}
        links = Counter(inode for inodes in files.values() for inode in inodes)
        total = sum({i: n for inodes in files.values() for i, n in inodes.items()}.values())
        oldest = time.time() - max_age_days * 86_400
        removed = []
        for key in keys:
            if key in keep or (self.last_used(key) >= oldest and total <= max_bytes):
                continue
            if not self._remove(key):
                continue
            links.subtract(files[key].keys())
            freed = sum(size for inode, size in files[key].items() if links[inode] == 0)
            total -= freed
            removed.append(key)
            logger.info("removed %s from the cache (%.1f MB)", self.root / key, freed / 1e6)
        return removed

    def _remove(self, key: str) -> bool:
        try:
            lock = self._lock(key, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            # Renamed first: what is half removed must not be found under its key.
            doomed = self.root / f".removing-{key}"
            remove_tree(doomed)
            (self.root / key).rename(doomed)
            remove_tree(doomed)
            (self.root / f"{key}.used").unlink(missing_ok=True)
        finally:
            os.close(lock)
        return True


def publish(staging: Path, target: Path) -> None:
    """Rename a finished directory into place; a complete one that is there already wins."""
    try:
        staging.rename(target)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        remove_tree(staging)


def remove_tree(path: Path) -> None:
    """Remove a directory and all that is in it; one that is not there is no error."""
    if path.exists():
        shutil.rmtree(path)


def _files(tree: Path) -> dict[tuple[int, int], int]:
    """The size of every file below `tree` by device and inode, so that hard links count once."""
    sizes = {}
    for folder, _, names in os.walk(tree):
        for name in names:
            stat = os.lstat(os.path.join(folder, name))
            sizes[stat.st_dev, stat.st_ino] = stat.st_size
    return sizes
