"""An agent's logs, of which Harbor reads some whole and in its event loop."""

import os
import stat
from pathlib import Path

from harbor_backend.places.limits import MAX_TRAJECTORY_BYTES
from harbor_backend.places.plain_file import NotPlainError, read_plain

SET_ASIDE = ".set-aside"
_READ_WHOLE = (".json", ".jsonl")
_TRAJECTORY = "trajectory.json"


def set_aside_unreadable(logs_dir: Path) -> list[str]:
    """Rename what Harbor would wait for, follow or load whole; returns what it was.

    That is a link, a special file, JSON of more than 64 MiB, and a trajectory
    that is no UTF-8. Raises nothing.
    """
    told = []
    for folder, folders, files in os.walk(logs_dir, followlinks=False):
        for name in [*files, *(f for f in folders if Path(folder, f).is_symlink())]:
            path = Path(folder, name)
            try:
                if problem := _problem(path, is_trajectory=path == logs_dir / _TRAJECTORY):
                    path.rename(path.with_name(f"{name}{SET_ASIDE}"))
                    told.append(f"The agent's {path.relative_to(logs_dir)} is not read: {problem}")
            except OSError as exc:
                told.append(f"The agent's {path.relative_to(logs_dir)} cannot be read: {exc}")
    return told


def _problem(path: Path, *, is_trajectory: bool) -> str | None:
    info = path.lstat()
    if path.name.endswith(SET_ASIDE):
        return None
    if not stat.S_ISREG(info.st_mode):
        return "it is no regular file"
    if path.suffix in _READ_WHOLE and info.st_size > MAX_TRAJECTORY_BYTES:
        return f"it holds {info.st_size} bytes, and at most {MAX_TRAJECTORY_BYTES} are read"
    if not is_trajectory:
        return None
    try:
        read_plain(path, MAX_TRAJECTORY_BYTES).decode()
    except (NotPlainError, UnicodeDecodeError) as exc:
        return f"it is no text: {exc}"
    return None
