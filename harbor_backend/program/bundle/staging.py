"""The files of a project that belong in its bundle."""

from __future__ import annotations

import fnmatch
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import hashlib
    from collections.abc import Iterable

NOISE = (
    "__pycache__",
    ".git",
    ".hypothesis",
    ".mypy_cache",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".venv",
    "*.egg-info",
    "*.pyc",
    "build",
    "dist",
    "node_modules",
    "uv.lock",
    "venv",
)


def is_noise(name: str) -> bool:
    """Whether a file or directory of this name never belongs in a bundle."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in NOISE)


def project_files(project: Path, *, without: Path | None = None) -> list[Path]:
    """The project's files, relative to it and sorted, without noise and the directory `without`.

    A directory with a `task.toml` is left out: it is a Harbor task, which comes to its sandbox
    another way, and its solution and tests are not for the agent to read.

    Raises ValueError naming the path of a symlink to a directory, of one that is broken or
    leaves the project, and of anything that is neither a file nor a directory.
    """
    project = project.resolve()
    found: list[Path] = []
    folders = [project]
    while folders:
        folder = folders.pop()
        if (folder / "task.toml").is_file():
            continue
        for entry in os.scandir(folder):
            path = Path(entry.path)
            if is_noise(entry.name) or path == without:
                continue
            if entry.is_symlink():
                _check_symlink(path, project)
            if entry.is_dir():
                folders.append(path)
            elif stat.S_ISREG(entry.stat().st_mode):
                found.append(path.relative_to(project))
            else:
                raise ValueError(f"{path} is neither a file nor a directory: remove it")
    return sorted(found)


def _check_symlink(path: Path, project: Path) -> None:
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise ValueError(
            f"{path} is a broken symlink (to {path.readlink()}): repair or remove it"
        ) from None
    if not target.is_relative_to(project):
        raise ValueError(
            f"{path} is a symlink that leaves the project (to {target}): copy the file in"
        )
    if target.is_dir():
        raise ValueError(f"{path} is a symlink to a directory ({target}): use a real directory")


def copy_files(project: Path, files: Iterable[Path], target: Path) -> None:
    """Copy a project's files, given relative to it, below `target`; symlinks become files."""
    for file in files:
        copy = target / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(project / file, copy)
        copy.chmod(0o755 if os.access(project / file, os.X_OK) else 0o644)


def hash_files(root: Path, files: Iterable[Path], digest: hashlib._Hash) -> None:
    """Feed the relative path, length and bytes of every file to `digest`."""
    for file in files:
        content = (root / file).read_bytes()
        digest.update(f"{file.as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
