"""Execution backends. ``LocalBackend`` is imported on first use."""

from typing import TYPE_CHECKING, Any

from osmosis_ai.rollout.backend.base import ExecutionBackend, ResultCallback

if TYPE_CHECKING:
    from local_backend import LocalBackend

__all__ = ["ExecutionBackend", "LocalBackend", "ResultCallback"]


def __getattr__(name: str) -> Any:
    if name == "LocalBackend":
        from local_backend import LocalBackend

        return LocalBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
