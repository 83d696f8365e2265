"""Packing a rollout project into a bundle: the wheel that its sandboxes run.

Everything here is loaded on first use, and needs `pip install 'osmosis-ai[harbor]'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harbor_backend.program.bundle import (
        BundleInfo,
        EntryPoints,
        build_bundle,
        entry_point_for,
        inspect_bundle,
        project_dir_for,
    )

__all__ = [
    "BundleInfo",
    "EntryPoints",
    "build_bundle",
    "entry_point_for",
    "inspect_bundle",
    "project_dir_for",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from harbor_backend.program import bundle

    return getattr(bundle, name)


def __dir__() -> list[str]:
    return __all__
