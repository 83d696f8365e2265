"""What a compose trial of Harbor's gets on top: labels, no wait at its end, its own mounts."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harbor.models.task.config import TaskConfig
from harbor.models.task.verifier_mode import task_has_any_separate_verifier

from harbor_backend.core.spec import StagedTask
from harbor_backend.places import labels
from harbor_backend.places.instance import instance_id

COMPOSE_FILE = "docker-compose.yaml"
"""The only name under which Harbor looks for a task's services."""

_MAX_BYTES = 16 * 1024 * 1024


def has_compose(directory: Path) -> bool:
    """Whether the sandboxes that are made of a directory are made of services."""
    return (directory / COMPOSE_FILE).exists()


def has_services(task: TaskConfig, path: Path) -> bool:
    """Whether any sandbox of a task is made of services: the agent's, or a separate verifier's."""
    directories = [path / "environment"]
    if task_has_any_separate_verifier(task):
        steps = [path / "steps" / step.name for step in task.steps or []]
        directories += [folder / "tests" for folder in (path, *steps)]
    return any(map(has_compose, directories))


def read_services(path: Path) -> dict[str, Any]:
    """The services of what ``docker compose config`` wrote as JSON.

    Raises:
        ValueError: it is none, or larger than a project can sensibly be.
    """
    with path.open("rb") as file:
        text = file.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise ValueError(f"the services come to more than {_MAX_BYTES} bytes")
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("Compose made no project of it")
    return dict(document.get("services") or {})


def has_own_network(service: Mapping[str, Any]) -> bool:
    """Whether a service's author said on which network it is: Compose adds the default one."""
    return "network_mode" in service or service.get("networks", {}) not in ({}, {"default": None})


def make_overlay(services: Mapping[str, Any], task: StagedTask, rollout_id: str) -> str:
    """Return a compose file that is layered over a task's own.

    Every service gets our labels, so that the reaper knows it, and a stop grace
    period of zero: nothing in a sandbox is worth ten seconds of waiting. What it
    mounts of the task and may write to is the trial's own copy: else trials
    would see each other, and the task would change.
    """
    owner = {
        labels.SANDBOX: "compose",
        labels.INSTANCE: instance_id(),
        labels.ROLLOUT: _escaped(rollout_id),
    }
    common = {"stop_grace_period": "0s", "labels": owner}
    overlay = {}
    for name, service in services.items():
        mounts = _own_mounts(service, task)
        overlay[name] = {**common, "volumes": mounts} if mounts else common
    return json.dumps({"services": overlay})  # JSON is YAML


async def has_compose_command() -> bool:
    """Whether Docker Compose v2 is on this machine."""
    try:
        probe = await asyncio.create_subprocess_exec(
            "docker", "compose", "version",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        return await probe.wait() == 0
    except FileNotFoundError:
        return False


def _own_mounts(service: Any, task: StagedTask) -> list[dict[str, Any]]:
    """The mounts of a service that lead into the task and can be written, from its copy."""
    found = service.get("volumes") if isinstance(service, Mapping) else None
    mounts = []
    for mount in found or []:
        if mount.get("type") != "bind" or mount.get("read_only"):
            continue
        copy = _in_copy(Path(str(mount["source"]).replace("$$", "$")), task)
        if copy is not None:
            mounts.append({**mount, "source": _escaped(str(copy))})
    return mounts


def _in_copy(source: Path, task: StagedTask) -> Path | None:
    """Where the copy of a task has what a mount names; ``None`` outside of the task."""
    if task.origin is None or not source.is_relative_to(task.origin):
        return None
    copy = task.path / source.relative_to(task.origin)
    return copy if copy.resolve().is_relative_to(task.path.resolve()) else None


def _escaped(text: str) -> str:
    """A text as Compose reads it back: a dollar would begin a variable."""
    return text.replace("$", "$$")
