"""What tools ask of this package beside running rollouts.

Sandboxes of an engine, tasks of a folder, hosts, caches, the parts that have to be
there, and results as Harbor's own tools read them. Each name is loaded on its first
use, so that a command imports what it needs.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harbor_backend.jobs.directory import JobDirectory
    from harbor_backend.jobs.errors import error_kind
    from harbor_backend.jobs.export import export_rollouts
    from harbor_backend.jobs.values import JobDescription, JobTask, TrialEnd, TrialError
    from harbor_backend.places.choose import needs_harbor
    from harbor_backend.places.docker.engine import Engine, EngineError, shared_engine
    from harbor_backend.places.docker.sandboxes import (
        COMPOSE,
        SandboxRecord,
        keep_sandbox,
        list_sandboxes,
        remove_sandboxes,
    )
    from harbor_backend.places.instance import instance_id
    from harbor_backend.places.skypilot.preflight import check_skypilot
    from harbor_backend.places.skypilot.sdk import installed_version
    from harbor_backend.places.ssh.settings import fleet_settings
    from harbor_backend.program.bundle.store import user_cache
    from harbor_backend.program.bundle.uv import find_uv
    from harbor_backend.program.native_agents import ENDPOINTLESS
    from harbor_backend.program.runtime.build import prune
    from harbor_backend.program.runtime.elf import find_patchelf
    from harbor_backend.trial.conclude import not_started
    from harbor_backend.trial.datasets import DatasetReference, fetch_dataset
    from harbor_backend.trial.tasks import check_task, find_tasks

__all__ = [
    "COMPOSE",
    "ENDPOINTLESS",
    "DatasetReference",
    "Engine",
    "EngineError",
    "JobDescription",
    "JobDirectory",
    "JobTask",
    "SandboxRecord",
    "TrialEnd",
    "TrialError",
    "check_skypilot",
    "check_task",
    "error_kind",
    "export_rollouts",
    "fetch_dataset",
    "find_patchelf",
    "find_tasks",
    "find_uv",
    "fleet_settings",
    "installed_version",
    "instance_id",
    "keep_sandbox",
    "list_sandboxes",
    "needs_harbor",
    "not_started",
    "prune",
    "remove_sandboxes",
    "shared_engine",
    "user_cache",
]

_MODULES = {
    "jobs.directory": ("JobDirectory",),
    "jobs.errors": ("error_kind",),
    "jobs.export": ("export_rollouts",),
    "jobs.values": ("JobDescription", "JobTask", "TrialEnd", "TrialError"),
    "places.choose": ("needs_harbor",),
    "places.docker.engine": ("Engine", "EngineError", "shared_engine"),
    "places.docker.sandboxes": (
        "COMPOSE",
        "SandboxRecord",
        "keep_sandbox",
        "list_sandboxes",
        "remove_sandboxes",
    ),
    "places.instance": ("instance_id",),
    "places.skypilot.preflight": ("check_skypilot",),
    "places.skypilot.sdk": ("installed_version",),
    "places.ssh.settings": ("fleet_settings",),
    "program.bundle.store": ("user_cache",),
    "program.bundle.uv": ("find_uv",),
    "program.native_agents": ("ENDPOINTLESS",),
    "program.runtime.build": ("prune",),
    "program.runtime.elf": ("find_patchelf",),
    "trial.conclude": ("not_started",),
    "trial.datasets": ("DatasetReference", "fetch_dataset"),
    "trial.tasks": ("check_task", "find_tasks"),
}
_WHERE = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"harbor_backend.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
