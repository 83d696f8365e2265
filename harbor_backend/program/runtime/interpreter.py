"""The interpreter that a runtime carries: which one, and what is part of it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_PROBE = """
import json, os, platform, sys
print(json.dumps({
    "executable": os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
    "stdlib": os.path.dirname(os.path.realpath(os.__file__)),
    "platlibdir": getattr(sys, "platlibdir", "lib"),
    "version": platform.python_version(),
    "build": " ".join(platform.python_build()),
}))
"""

NOT_NEEDED = frozenset(
    {
        *("EXTERNALLY-MANAGED", "__pycache__", "dist-packages", "ensurepip", "idlelib"),
        *("site-packages", "test", "tests", "tkinter", "turtle.py", "turtledemo"),
    }
)
NOT_NEEDED_MODULES = ("_ctypes_test", "_test", "_tkinter", "_xxtestfuzz", "xxlimited", "xxsubtype")


@dataclass(frozen=True)
class Interpreter:
    """A CPython on this machine, the one below any virtual environment.

    `stdlib` is its standard library's directory, whose `lib-dynload/` holds extension modules.
    """

    executable: Path
    stdlib: Path
    platlibdir: str
    version: str
    build: str

    @classmethod
    def running(cls) -> Interpreter:
        """The interpreter that runs this code."""
        return cls(
            executable=Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable))),
            stdlib=Path(os.path.realpath(os.__file__)).parent,
            platlibdir=sys.platlibdir,
            version=platform.python_version(),
            build=" ".join(platform.python_build()),
        )

    @classmethod
    def at(cls, executable: Path) -> Interpreter:
        """The interpreter that a program is. Raises RuntimeError when it does not run."""
        done = subprocess.run(
            [str(executable), "-I", "-c", _PROBE], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{executable} is no working Python: {done.stderr.strip()}")
        found = json.loads(done.stdout)
        return cls(
            executable=Path(found["executable"]),
            stdlib=Path(found["stdlib"]),
            platlibdir=found["platlibdir"],
            version=found["version"],
            build=found["build"],
        )

    @property
    def short_version(self) -> str:
        """Major and minor version, such as "3.12"."""
        return ".".join(self.version.split(".")[:2])

    @property
    def library(self) -> Path:
        """The standard library's directory in a tree, relative to it."""
        return Path("python", self.platlibdir, f"python{self.short_version}")

    @property
    def site_packages(self) -> Path:
        """The directory of installed packages in a tree, relative to it."""
        return self.library / "site-packages"

    def extension_modules(self) -> list[Path]:
        """The extension modules a sandbox may want, by path on this machine."""
        found = (self.stdlib / "lib-dynload").glob("*.so")
        return sorted(f for f in found if not f.name.startswith(NOT_NEEDED_MODULES))

    def identity(self) -> dict[str, str]:
        """What sets this interpreter apart from another build, wherever either is installed."""
        return {
            "version": self.version,
            "build": self.build,
            "machine": platform.machine(),
            "libc": "-".join(platform.libc_ver(str(self.executable))) + libc_release(),
            "executable": file_hash(self.executable),
        }

    def stamp(self) -> str:
        """A cheap stand-in for `identity`: changes whenever the files or the libc do."""
        stat = self.executable.stat()
        parts = (
            *(self.executable, stat.st_ino, stat.st_size, stat.st_mtime_ns),
            *(self.stdlib, self.stdlib.stat().st_mtime_ns, self.version, self.build),
            *(platform.machine(), libc_release()),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def libc_release() -> str:
    """The C library's name and version as the running process sees it."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    except (ValueError, OSError):
        return "not GNU"


def file_hash(path: Path) -> str:
    """The SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
