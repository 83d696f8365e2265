"""HarborBackend: rollouts as Harbor trials in sandboxes. Loaded on first use."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harbor_backend.backend import HarborBackend
    from harbor_backend.tasks import TaskMode

__all__ = ["HarborBackend", "TaskMode"]


def __getattr__(name: str) -> Any:
    if name == "HarborBackend":
        from harbor_backend.backend import HarborBackend

        return HarborBackend
    if name == "TaskMode":
        from harbor_backend.tasks import TaskMode

        return TaskMode
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
