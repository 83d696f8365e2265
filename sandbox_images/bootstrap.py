"""Carrying out a recipe: a root file system as one tar file, made by mmdebstrap."""

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from sandbox_images import interpreter
from sandbox_images.errors import BaseImageError
from sandbox_images.interpreter import Interpreter
from sandbox_images.recipe import Recipe

_TIMEOUT_SECONDS = 900
_LINES_SHOWN = 15


def build_root(recipe: Recipe, python: Interpreter, workspace: Path) -> Path:
    """Build the image's root file system.

    Args:
        recipe: what to build.
        python: the interpreter that goes into it.
        workspace: an empty directory with about 1 GB of room.

    Returns:
        The tar file, inside `workspace`.

    Raises:
        BaseImageError: mmdebstrap is missing, failed, or took longer than 15 minutes.
    """
    if shutil.which("mmdebstrap") is None:
        raise BaseImageError(
            "mmdebstrap is missing: it builds the base image where no container registry "
            "answers. Install it (apt-get install mmdebstrap) and try again."
        )
    overlay = workspace / "overlay.tar"
    target = workspace / "root.tar"
    with tarfile.open(overlay, "w") as archive:
        _add_files(archive, recipe)
        if not python.is_debian:
            interpreter.add_to_tar(archive, python)
    command = recipe.bootstrap_command(python.packages, overlay, target)
    _run(command, "\n".join([*recipe.sources, ""]), workspace)
    return target


def _add_files(archive: tarfile.TarFile, recipe: Recipe) -> None:
    for name, text in recipe.files().items():
        content = text.encode()
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))


def _run(command: list[str], sources: str, workspace: Path) -> None:
    # A SOURCE_DATE_EPOCH would change the files' times after their bytecode was compiled.
    environment = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}
    environment |= {"TMPDIR": str(workspace), "LC_ALL": "C"}
    # The image's bytecode has to be written, whatever this process was told.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        subprocess.run(
            command,
            input=sources,
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise BaseImageError(
            f"mmdebstrap did not finish within {_TIMEOUT_SECONDS} s: is the package mirror in "
            "/etc/apt reachable (apt-get update)?"
        ) from error
    except subprocess.CalledProcessError as error:
        raise BaseImageError(bootstrap_failure(error.returncode, error.stdout)) from error


def bootstrap_failure(returncode: int, output: str) -> str:
    """The message for a failed bootstrap: its last lines, and what to look at."""
    last = "\n".join(f"  {line}" for line in output.splitlines()[-_LINES_SHOWN:])
    return (
        f"mmdebstrap failed with exit code {returncode}; its last lines:\n{last}\n"
        "Check that the package mirror in /etc/apt answers (apt-get update) and that this "
        "process may create file systems (root, or unprivileged user namespaces)."
    )
