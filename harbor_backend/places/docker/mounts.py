"""Mounts as the Engine API takes them."""

from pathlib import Path
from typing import Any


def bind(source: Path | str | None, target: str, *, read_only: bool) -> dict[str, Any]:
    """A mount of a local file or directory."""
    return {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": read_only}


def engine_mount(mount: Any) -> dict[str, Any]:
    """The engine's form of one of Harbor's mounts.

    Raises:
        ValueError: it is neither a bind nor a volume.
    """
    if mount["type"] == "bind":
        return bind(mount["source"], mount["target"], read_only=bool(mount.get("read_only")))
    if mount["type"] == "volume":
        return {"Type": "volume", "Source": mount["source"], "Target": mount["target"]}
    raise ValueError(f"mounts: the type {mount['type']!r} is not supported; use bind or volume")
