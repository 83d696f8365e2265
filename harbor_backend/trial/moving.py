"""Moving a tree to the archive, which costs nothing however many files it holds."""

import os
import stat
from pathlib import Path

from osmosis_ai.rollout.container.supervisor.transfer import MAX_DEPTH

_OURS = stat.S_IRUSR | stat.S_IWUSR


def move_plain(source: Path, target: Path, max_bytes: int, max_entries: int) -> tuple[int, int]:
    """Move what nobody has to check or change any more; returns its bytes and entries.

    That is a tree of directories and regular files of ours, within the budget,
    whose place is free. In a directory that is there already, each child is
    looked at by itself. What stays is for a copy to deal with, which says why.

    Raises:
        OSError: a directory cannot be listed or made.
    """
    if source.is_symlink() or not source.is_dir():
        return 0, 0
    if target.is_dir() and not target.is_symlink():
        used_bytes = used_entries = 0
        for child in sorted(source.iterdir()):
            to = target / child.name
            if os.path.lexists(to):
                continue
            size, entries = _move(child, to, max_bytes - used_bytes, max_entries - used_entries)
            used_bytes, used_entries = used_bytes + size, used_entries + entries
        return used_bytes, used_entries
    return (0, 0) if os.path.lexists(target) else _move(source, target, max_bytes, max_entries)


def _move(source: Path, target: Path, max_bytes: int, max_entries: int) -> tuple[int, int]:
    size, entries = _measured(source, max_entries)
    if not entries or size > max_bytes:
        return 0, 0
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.rename(target)
    except OSError:  # another file system
        return 0, 0
    return size, entries


def _measured(source: Path, max_entries: int) -> tuple[int, int]:
    """Bytes and entries of a tree that may be moved; no entries where something may not."""
    user, size, entries = os.geteuid(), 0, 1
    pending = [(str(source), 0)] if source.is_dir() and not source.is_symlink() else []
    if not pending:
        info = source.lstat()
        return (info.st_size, 1) if _is_plain(info, user) and max_entries > 0 else (0, 0)
    while pending:
        folder, depth = pending.pop()
        with os.scandir(folder) as found:
            for entry in found:
                info, entries = entry.stat(follow_symlinks=False), entries + 1
                if entries > max_entries or depth >= MAX_DEPTH - 1:
                    return 0, 0
                if stat.S_ISDIR(info.st_mode) and info.st_uid == user:
                    pending.append((entry.path, depth + 1))
                elif _is_plain(info, user):
                    size += info.st_size
                else:
                    return 0, 0
    return size, entries


def _is_plain(info: os.stat_result, user: int) -> bool:
    """Whether it is a file of ours under one name: no other may change it later."""
    mine = info.st_uid == user and info.st_nlink == 1 and info.st_mode & _OURS == _OURS
    return stat.S_ISREG(info.st_mode) and mine
