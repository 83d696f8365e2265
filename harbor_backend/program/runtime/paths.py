"""Where things lie in a sandbox that has a runtime."""

from pathlib import Path, PurePosixPath

MOUNT = PurePosixPath("/opt/osmosis")
PYTHON = MOUNT / "python" / "bin" / "python3"
LIBRARIES = MOUNT / "lib"
CA_BUNDLE = MOUNT / "ca.pem"
DESCRIPTION = MOUNT / "runtime.json"
RPATH = f"{LIBRARIES}:{MOUNT / 'python' / 'lib'}"


def under(tree: Path, inside: PurePosixPath) -> Path:
    """Where a sandbox path lies in a tree that is not mounted yet."""
    return tree / inside.relative_to(MOUNT)
