"""The sandboxes that the engine has: whose they are, and how to remove them."""

import asyncio
import json
import logging
import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from harbor_backend.places import labels
from harbor_backend.places.docker.engine import Engine, EngineError
from harbor_backend.places.instance import is_alive, is_ours_to_judge
from osmosis_ai.rollout.container.files import CHANNEL_DIR

logger = logging.getLogger(__name__)

COMPOSE = "compose"
_COMPOSE_PROJECT = "com.docker.compose.project"


class Owner(StrEnum):
    """What is known of the process that made a sandbox.

    ``UNKNOWN``: it belongs to another machine, process namespace or user, so
    nobody here can tell whether it lives.
    """

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class SandboxRecord:
    """One container of a trial. ``created_at`` is in seconds since the epoch.

    ``channel_dir`` is the directory of its sockets on its engine's machine.
    """

    container: str
    name: str
    kind: str
    rollout_id: str
    instance: str
    owner: Owner
    state: str
    created_at: float
    project: str | None = None
    channel_dir: Path | None = None

    @property
    def kept(self) -> bool:
        """Whether somebody asked for it to outlive its trial."""
        return self.name.startswith(labels.KEPT_PREFIX)

    @property
    def stale(self) -> bool:
        """Whether it may be removed: its owner is known to be dead, and nobody kept it."""
        return self.owner is Owner.DEAD and not self.kept

    @property
    def age_sec(self) -> float:
        """How long ago it was made."""
        return max(0.0, time.time() - self.created_at)


async def list_sandboxes(
    engine: Engine, marks: Mapping[str, str] | None = None
) -> list[SandboxRecord]:
    """Return the engine's sandboxes, running or not, oldest first; only those with ``marks``.

    Raises:
        EngineError: the engine does not answer.
    """
    wanted = [f"{name}={value}" for name, value in (marks or {}).items()]
    records = await _containers(engine, labels.SANDBOX, *wanted)
    owners = {identifier: _owner(identifier) for identifier in map(_instance, records)}
    found = [_sandbox(record, owners[_instance(record)]) for record in records]
    return sorted(found, key=lambda sandbox: (sandbox.created_at, sandbox.name))


async def remove_sandboxes(
    engine: Engine, sandboxes: Iterable[SandboxRecord]
) -> list[SandboxRecord]:
    """Remove sandboxes with their anonymous volumes and sockets; returns those that are gone.

    A compose project that is left without containers loses its networks too.
    One that cannot be removed is logged and left out of the answer.
    """
    removed = [sandbox for sandbox in sandboxes if await _removed(engine, sandbox)]
    for project in sorted({s.project for s in removed if s.project is not None}):
        await _remove_networks(engine, project)
    if removed:
        await remove_dead_namespaces(engine)
    return removed


async def remove_dead_namespaces(engine: Engine) -> None:
    """Remove holders of namespaces whose owner is dead and that no sandbox lives in.

    Most go with their owner. Left are those of sandboxes that were kept, and
    those whose owner died before it had started them.

    Raises:
        EngineError: the engine does not answer.
    """
    holders = await _containers(engine, labels.NAMESPACE)
    dead = [h["Id"] for h in holders if _owner(h["Labels"][labels.NAMESPACE]) is Owner.DEAD]
    if not dead:
        return
    everything = await engine.call("GET", "/containers/json", params={"all": "true"})
    lived_in = {container["HostConfig"]["NetworkMode"] for container in everything}
    for holder in dead:
        if f"container:{holder}" not in lived_in:
            await engine.remove(holder)


async def keep_sandbox(engine: Engine, sandbox: SandboxRecord) -> SandboxRecord:
    """Rename a sandbox so that no reaper takes it; returns it under its new name.

    Raises:
        EngineError: the engine refuses.
    """
    if sandbox.kept:
        return sandbox
    name = f"{labels.KEPT_PREFIX}-{sandbox.name.removeprefix(f'{labels.PREFIX}-')}"
    await engine.call("POST", f"/containers/{sandbox.container}/rename", params={"name": name})
    return replace(sandbox, name=name)


def _owner(identifier: str) -> Owner:
    if not is_ours_to_judge(identifier):
        return Owner.UNKNOWN
    return Owner.ALIVE if is_alive(identifier) else Owner.DEAD


def _sandbox(record: dict[str, Any], owner: Owner) -> SandboxRecord:
    marks = record["Labels"]
    kind = marks[labels.SANDBOX]
    return SandboxRecord(
        container=record["Id"],
        name=str((record["Names"] or [record["Id"][:12]])[0]).removeprefix("/"),
        kind=kind,
        rollout_id=marks.get(labels.ROLLOUT, ""),
        instance=_instance(record),
        owner=owner,
        state=record["State"],
        created_at=float(record["Created"]),
        project=marks.get(_COMPOSE_PROJECT) if kind == COMPOSE else None,
        channel_dir=_channel_dir(record),
    )


def _instance(record: dict[str, Any]) -> str:
    return str(record["Labels"].get(labels.INSTANCE, ""))


async def _removed(engine: Engine, sandbox: SandboxRecord) -> bool:
    try:
        await engine.remove(sandbox.container)
    except EngineError as exc:
        logger.warning("Sandbox %s was not removed: %s", sandbox.name, exc)
        return False
    if engine.is_local and sandbox.channel_dir is not None:
        await asyncio.to_thread(_remove_channel_dir, sandbox.channel_dir)
    logger.info("Removed sandbox %s of rollout %s", sandbox.name, sandbox.rollout_id or "unknown")
    return True


def _channel_dir(record: dict[str, Any]) -> Path | None:
    for mount in record.get("Mounts") or []:
        if mount["Type"] == "bind" and mount["Destination"] == CHANNEL_DIR:
            return Path(mount["Source"])
    return None


def _remove_channel_dir(path: Path) -> None:
    # A label is only somebody's word: nothing but a directory of ours is removed.
    ours = path.parent.name == f"osmosis-{os.getuid()}" and path.name.startswith("s-")
    if ours and path.is_dir() and not path.is_symlink() and path.stat().st_uid == os.getuid():
        shutil.rmtree(path, ignore_errors=True)


async def _remove_networks(engine: Engine, project: str) -> None:
    label = f"{_COMPOSE_PROJECT}={project}"
    try:
        if await _containers(engine, label):  # somebody else's, or kept: they need the network
            return
        for network in await engine.call("GET", "/networks", params=_filters(label)):
            await engine.call("DELETE", f"/networks/{network['Id']}")
            logger.info("Removed network %s", network["Name"])
    except EngineError as exc:
        if exc.status != 404:  # 404: another process removed it first
            logger.warning("The networks of %s were not all removed: %s", project, exc)


async def _containers(engine: Engine, *wanted: str) -> Sequence[dict[str, Any]]:
    answer: list[dict[str, Any]] = await engine.call(
        "GET", "/containers/json", params={"all": "true", **_filters(*wanted)}
    )
    return answer


def _filters(*wanted: str) -> dict[str, str]:
    return {"filters": json.dumps({"label": wanted})}
