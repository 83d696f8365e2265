"""The fixtures of rollouts in sandboxes."""

from tests.harbor_backend.conftest import (
    artifact_root,
    engine,
    nothing_left_behind,
    private_temp,
    sdk_runtime,
)
from tests.harbor_backend.rollouts.conftest import make_backend, make_task, project

__all__ = [
    "artifact_root",
    "engine",
    "make_backend",
    "make_task",
    "nothing_left_behind",
    "private_temp",
    "project",
    "sdk_runtime",
]
