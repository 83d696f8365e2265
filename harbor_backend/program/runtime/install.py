"""Installing packages into a tree so that they work where the tree will be mounted."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from typing import TYPE_CHECKING

from harbor_backend.program.bundle.project import SDK_NAME
from harbor_backend.program.bundle.uv import UvError, run_uv
from harbor_backend.program.runtime import elf
from harbor_backend.program.runtime.base import copy_libraries
from harbor_backend.program.runtime.paths import LIBRARIES, PYTHON, RPATH, under

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

logger = logging.getLogger(__name__)


def install_requirements(
    requirements: Sequence[str], constraints: Sequence[str], site_packages: Path, scratch: Path
) -> None:
    """Install requirements in the host's versions; in others, with a warning, where they clash.

    Raises UvError when they cannot be installed.
    """
    wanted = _write(scratch / "requirements.txt", requirements)
    pinned = _write(scratch / "constraints.txt", constraints)
    # The SDK is copied from the host: no dependency may bring another one.
    override = _write(scratch / "overrides.txt", [f"{SDK_NAME} ; python_version < '0'"])
    arguments = ["-r", wanted, "--overrides", override]
    doing = f"installing {', '.join(requirements)} for a sandbox"
    try:
        _install(doing, [*arguments, "--constraints", pinned], site_packages)
    except UvError as error:
        if "No solution found" not in error.output:
            raise
        logger.warning(
            "the bundle does not resolve with the versions installed on the host; "
            "its sandboxes get others: %s",
            error.output.strip(),
        )
        _install(doing, arguments, site_packages)


def install_wheel(wheel: Path, site_packages: Path) -> None:
    """Install a wheel without its requirements. Raises UvError when it cannot be installed."""
    _install(f"installing {wheel.name}", ["--no-deps", str(wheel)], site_packages)


def _install(doing: str, arguments: Sequence[str], site_packages: Path) -> None:
    command = ["pip", "install", "--python", sys.executable, "--target", str(site_packages)]
    run_uv(doing, [*command, "--link-mode", "hardlink", *arguments])


def _write(path: Path, lines: Sequence[str]) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def move_scripts(site_packages: Path, tree: Path) -> None:
    """Move the packages' programs beside the tree's interpreter, to be started by it."""
    source, target = site_packages / "bin", under(tree, PYTHON).parent
    (site_packages / ".lock").unlink(missing_ok=True)
    if not source.is_dir():
        return
    for script in sorted(source.iterdir()):
        copy = target / script.name
        if copy.exists() or not script.is_file():
            continue
        content = script.read_bytes()
        if content.startswith(b"#!"):
            content = content.replace(os.fsencode(sys.executable), str(PYTHON).encode())
        copy.write_bytes(content)
        copy.chmod(0o755)
    shutil.rmtree(source)


def adopt_libraries(site_packages: Path, tree: Path) -> None:
    """Make the packages' extension modules find in the tree what they load from the host.

    The search path of a library counts for itself only when it is of the newer kind, which
    hides the interpreter's: those are rewritten, in a copy, because the file may be a link
    into uv's cache.
    """
    modules = [f for f in sorted(site_packages.rglob("*.so*")) if f.is_file() and elf.is_elf(f)]
    listed = elf.libraries_of(modules).values()
    outside = {
        name: path
        for libraries in listed
        for name, path in (libraries or {}).items()
        if not path.resolve().is_relative_to(site_packages.resolve())
    }
    copied = copy_libraries(outside, tree)
    elf.set_search_path(copied, RPATH)
    for module in modules:
        own = elf.search_path(module)
        if own and str(LIBRARIES) not in own.split(":"):
            _unlink_from_cache(module)
            elf.set_search_path([module], f"{own}:{RPATH}")


def _unlink_from_cache(file: Path) -> None:
    copy = file.with_name(f".{file.name}.copy")
    shutil.copy2(file, copy)
    copy.chmod(copy.stat().st_mode | 0o200)
    copy.replace(file)
