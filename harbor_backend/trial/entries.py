"""What may be in a task's directory: files, directories, and links that stay in it."""

import errno
import os
import stat
from pathlib import Path


def check_entries(task: Path) -> None:
    """Pass when a task can be copied, and nothing of its copy leads out of it.

    Raises:
        ValueError: it holds a link that leaves it, or what is neither a file, a
            directory nor a link; the text names it.
        OSError: a directory of it cannot be read.
    """
    root = task.resolve()
    for folder, folders, files in os.walk(root, onerror=_raised, followlinks=False):
        for name in (*folders, *files):
            entry = Path(folder, name)
            mode = entry.lstat().st_mode
            if stat.S_ISLNK(mode):
                _check_link(entry, root)
            elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise ValueError(
                    f"it holds {entry.relative_to(root)}, which is neither a file nor a directory: "
                    "remove it"
                )


def keep_links_inside(copy: Path, origin: Path) -> None:
    """Have the links of a checked task's copy point into the copy, as their originals do.

    One that is absolute, or that goes through the task's own parent, would not.
    """
    root, copied = origin.resolve(), copy.resolve()
    for folder, folders, files in os.walk(root, onerror=_raised, followlinks=False):
        for name in (*folders, *files):
            entry = Path(folder, name)
            if not entry.is_symlink():
                continue
            link = copied / entry.relative_to(root)
            if _is_circle(entry):
                goal, same = link, _is_circle(link) and not os.path.isabs(os.readlink(link))
            else:
                goal = copied / _goal(entry).relative_to(root)
                same = _goal(link) == goal
            if not same:
                link.unlink()
                link.symlink_to(os.path.relpath(goal, link.parent))


def _is_circle(link: Path) -> bool:
    """Whether a link leads nowhere, for its way never ends."""
    try:
        link.stat()
    except OSError as exc:
        return exc.errno == errno.ELOOP
    return False


def _check_link(link: Path, root: Path) -> None:
    if not _goal(link).is_relative_to(root):
        raise ValueError(
            f"its symbolic link {link.relative_to(root)} -> {os.readlink(link)} leaves the task: "
            "replace it by what it points to"
        )


def _goal(link: Path) -> Path:
    """Where a link leads; there need not be anything."""
    return Path(os.path.realpath(link))


def _raised(error: OSError) -> None:
    """A directory that cannot be read is no empty one."""
    raise error
