"""HarborBackend: rollouts as Harbor trials in sandboxes. Loaded on first use.

``harbor_backend.admin`` is for tools.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harbor_backend.backend import HarborBackend
    from harbor_backend.errors import HarborBackendError
    from harbor_backend.places.choose import DOCKER, SKY_DOCKER
    from harbor_backend.trial.tasks import TaskError, TaskMode

__all__ = ["DOCKER", "SKY_DOCKER", "HarborBackend", "HarborBackendError", "TaskError", "TaskMode"]

_WHERE = {
    "DOCKER": "places.choose",
    "SKY_DOCKER": "places.choose",
    "HarborBackend": "backend",
    "HarborBackendError": "errors",
    "TaskError": "trial.tasks",
    "TaskMode": "trial.tasks",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"harbor_backend.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
