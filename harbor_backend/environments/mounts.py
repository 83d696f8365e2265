"""Mounts as the Engine API takes them."""

from pathlib import Path
from typing import Any


def bind(source: Path | str | None, target: str, *, read_only: bool) -> dict[str, Any]:
    """A directory, file or socket of the engine's machine."""
    return {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": read_only}


def host_mount(mount: Any) -> dict[str, Any]:
    """What Harbor calls a mount.

    Raises:
        ValueError: it is neither a bind mount nor a volume.
    """
    if mount["type"] == "bind":
        return bind(mount["source"], mount["target"], read_only=bool(mount.get("read_only")))
    if mount["type"] == "volume":
        return {"Type": "volume", "Source": mount["source"], "Target": mount["target"]}
    raise ValueError(f"mounts: the type {mount['type']!r} is not supported; use bind or volume")
