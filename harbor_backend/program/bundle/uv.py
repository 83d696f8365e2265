"""Calling uv, which builds wheels and installs them."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SHOWN_LINES = 40


class UvError(RuntimeError):
    """uv ended with an error; `output` is all that it printed, the message its last lines."""

    def __init__(self, doing: str, output: str) -> None:
        self.output = output
        tail = "\n".join(output.splitlines()[-SHOWN_LINES:])
        super().__init__(f"{doing} failed; the last lines uv printed:\n{tail}")


def find_uv() -> str:
    """The path of uv: the `uv` package's own first, then PATH.

    Raises RuntimeError when there is none.
    """
    try:
        from uv import find_uv_bin

        return find_uv_bin()
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise RuntimeError(
            "uv is not installed; it builds bundles and runtimes: pip install 'osmosis-ai[harbor]'"
        )
    return found


def run_uv(doing: str, arguments: Sequence[str], *, cwd: Path | None = None) -> str:
    """Run uv and return what it printed; `doing` names the step in the error.

    Raises UvError when uv ends with an error.
    """
    done = subprocess.run(
        [find_uv(), "--no-progress", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise UvError(doing, done.stdout)
    return done.stdout
