"""Work on a tree before it is published: bytecode, permissions, links."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path, PurePosixPath

logger = logging.getLogger(__name__)


def compile_tree(folder: Path, place: PurePosixPath, python: Path) -> None:
    """Compile the modules below `folder`, for the place where they will be mounted.

    The bytecode is never checked against its source: a mount is read-only, and its times may
    differ. Files that are no valid Python, such as a package's templates, stay uncompiled.
    """
    command = [str(python), "-I", "-m", "compileall", "-q", "-j", "0"]
    command += ["--invalidation-mode", "unchecked-hash", "-s", str(folder), "-p", str(place)]
    done = subprocess.run(
        [*command, str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{python} could not compile {place}: {done.stdout.strip()}")
    if done.returncode == 1:
        logger.debug("some files of %s did not compile: %s", place, done.stdout.strip())


def link_tree(source: Path, target: Path) -> None:
    """Fill the directory `target` with hard links to the files of `source`, copies if need be."""
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EMLINK, errno.EPERM):
            raise
        shutil.copy2(source, target)


def merge_tree(source: Path, target: Path) -> None:
    """Move the files of `source` into `target`, in place of files of the same name.

    A replaced file that is linked elsewhere stays as it is there.
    """
    for folder, _, names in os.walk(source):
        place = target / os.path.relpath(folder, source)
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            os.replace(os.path.join(folder, name), place / name)
    shutil.rmtree(source)


def make_readable(tree: Path) -> None:
    """Let every user read the tree: a sandbox's need not be the one that built it."""
    for folder, _, names in os.walk(tree):
        _allow(folder, 0o555)
        for name in names:
            _allow(os.path.join(folder, name), 0o444)


def _allow(path: str, bits: int) -> None:
    mode = os.lstat(path).st_mode
    if os.path.islink(path):
        return
    wanted = mode | bits | (0o111 if mode & 0o100 else 0)
    if wanted != mode:
        os.chmod(path, wanted & 0o7777)
