"""The interpreter of the base image: a copy of this one, or Debian's own packages."""

import io
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_LIBRARY = re.compile(r"=> (/\S+) \(0x")
# Left out as in the official image, plus the parts that need a display.
_UNWANTED_NAMES = frozenset(
    {"__pycache__", "test", "tests", "idle_test", "idlelib", "tkinter", "turtledemo"}
)
_UNWANTED_FILE = re.compile(r"(^libpython.*\.a$|^_tkinter\.|^_(x?x?test|ctypes_test)|\.py[co]$)")


@dataclass(frozen=True)
class Interpreter:
    """A CPython installation.

    Attributes:
        prefix: its `sys.base_prefix`.
        version: `major.minor`.
    """

    prefix: Path
    version: str

    @property
    def is_debian(self) -> bool:
        """Whether it is Debian's own, which comes as packages and not as one tree."""
        return self.prefix == Path("/usr")

    @property
    def packages(self) -> list[str]:
        """The Debian packages that it is made of or needs."""
        if self.is_debian:
            return ["python3", "python3-pip", "python3-venv"]
        found, _ = self._libraries()
        return found

    def files(self) -> Iterator[tuple[str, Path]]:
        """The tree to copy: pairs of path below `/usr/local` and file on this machine."""
        name = f"python{self.version}"
        yield f"bin/{name}", self.prefix / "bin" / name
        for library in sorted((self.prefix / "lib").glob("libpython*.so*")):
            yield f"lib/{library.name}", library
        for top in (f"lib/{name}", f"include/{name}"):
            for path in sorted((self.prefix / top).rglob("*")):
                relative = path.relative_to(self.prefix)
                if not path.is_dir() and wanted(PurePosixPath(relative)):
                    yield str(relative), path
        _, strangers = self._libraries()
        for library in strangers:
            yield f"lib/{library.name}", library

    def _libraries(self) -> tuple[list[str], list[Path]]:
        """The packages of the libraries it links to, and those that no package owns."""
        modules = (self.prefix / "lib" / f"python{self.version}" / "lib-dynload").glob("*.so")
        binaries = [self.prefix / "bin" / f"python{self.version}"]
        binaries += [path for path in sorted(modules) if not _UNWANTED_FILE.search(path.name)]
        listing = subprocess.run(
            ["ldd", *map(str, binaries)], check=True, capture_output=True, text=True
        ).stdout
        return _owners(linked_libraries(listing, self.prefix))


def this_interpreter() -> Interpreter:
    """The installation behind the running interpreter, also from within a venv."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Interpreter(prefix=Path(sys.base_prefix).resolve(), version=version)


def wanted(relative: PurePosixPath) -> bool:
    """Whether a file of an installation belongs in the image, by its path below the prefix.

    Installed packages do not; the image gets a fresh pip from the interpreter's own bundle.
    """
    if "site-packages" in relative.parts:
        return False
    if _UNWANTED_NAMES.intersection(relative.parts):
        return False
    return not _UNWANTED_FILE.search(relative.name)


def linked_libraries(listing: str, prefix: Path) -> list[Path]:
    """The libraries outside `prefix` that an `ldd` listing names, each once."""
    paths = dict.fromkeys(Path(found) for found in _LIBRARY.findall(listing))
    return [path for path in paths if not path.is_relative_to(prefix)]


def _owners(libraries: list[Path]) -> tuple[list[str], list[Path]]:
    packages: set[str] = set()
    strangers: list[Path] = []
    for library in libraries:
        # A merged /usr: the loader and the package database may name the file differently.
        names = {str(library), str(library.resolve()), str(library).removeprefix("/usr")}
        found = subprocess.run(
            ["dpkg-query", "--search", *sorted(names)], capture_output=True, text=True, check=False
        ).stdout
        owner = found.split(":", 1)[0].strip()
        if owner:
            packages.add(owner)
        else:
            strangers.append(library)
    return sorted(packages), strangers


def add_to_tar(archive: tarfile.TarFile, interpreter: Interpreter) -> None:
    """Add the interpreter's tree under `usr/local`, owned by root, with its own prefix renamed."""
    for relative, path in interpreter.files():
        info = tarfile.TarInfo(f"usr/local/{relative}")
        if path.is_symlink() and "/" not in str(path.readlink()):
            info.type = tarfile.SYMTYPE
            info.linkname = str(path.readlink())
            archive.addfile(info)
            continue
        content = path.read_bytes()
        if path.name.startswith("_sysconfigdata") or path.name == "Makefile":
            content = content.replace(str(interpreter.prefix).encode(), b"/usr/local")
        info.mode = path.stat().st_mode & 0o755
        info.mtime = int(path.stat().st_mtime)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    version = f"python{interpreter.version}"
    for link in ("python3", "python"):
        info = tarfile.TarInfo(f"usr/local/bin/{link}")
        info.type = tarfile.SYMTYPE
        info.linkname = version
        archive.addfile(info)
