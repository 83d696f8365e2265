"""Runs agent workflows and Harbor tasks in isolated sandboxes and returns graded samples."""

from typing import Any

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    # importlib.metadata costs more than the rest of the rollout core; every sandbox would pay.
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("osmosis-ai")
    except PackageNotFoundError:  # a source tree on sys.path that nobody installed
        return "0+unknown"
