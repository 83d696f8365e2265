"""Checks of the Docker engine and what comes with it."""

import asyncio
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from harbor_backend.admin import Engine, EngineError, list_sandboxes
from osmosis_ai.cli.doctor.findings import Finding, fail, ok, warn
from osmosis_ai.cli.doctor.machine import disk

_OLDEST_ENGINE = 20
_RUN = Path("/var/run")
_PROC = Path("/proc")
_FOR_COMPOSE_TASKS = "tasks with several services need it: install the Docker CLI plug-in"


async def examine_engine() -> list[Finding]:
    """Check the engine and, where it answers, all that hangs on it."""
    try:
        engine = Engine()
    except EngineError as exc:
        return [fail("engine", str(exc), "set DOCKER_HOST to a unix:// or tcp:// address")]
    try:
        version = await engine.call("GET", "/version", timeout=10)
        info = await engine.call("GET", "/info", timeout=10)
    except EngineError as exc:
        remedy = "`make setup` installs and starts one"
        if os.environ.get("DOCKER_HOST"):
            remedy = f"start the engine at {engine.host}, or unset DOCKER_HOST"
        elif _permission_denied(engine):
            remedy = "add this user to the group docker, and log in again"
        return [
            fail("engine", str(exc).partition(". ")[0], remedy),
            *pid_files(answers=False),
            *await asyncio.to_thread(_plug_ins),
        ]
    else:
        return [
            _engine(engine, version),
            *pid_files(answers=True),
            *await asyncio.to_thread(_plug_ins),
            await asyncio.to_thread(_buildkit),
            await asyncio.to_thread(_base_image, engine.host),
            await _sandboxes(engine),
            *_engine_disk(engine, info),
        ]
    finally:
        await engine.aclose()


def pid_files(*, answers: bool, run: Path = _RUN, proc: Path = _PROC) -> list[Finding]:
    """Find pid files of dead daemons, which stop the next start of an engine."""
    stale = [
        path
        for path, name in (
            (run / "docker.pid", "dockerd"),
            (run / "docker/containerd/containerd.pid", "containerd"),
        )
        if path.is_file() and not _lives(path, name, proc)
    ]
    if not stale:
        return [ok("pid file", "no stale one")]
    names = " ".join(map(str, stale))
    found = warn if answers else fail
    remedy = f"rm {names}" + ("" if answers else ", then start the engine (`make setup` does both)")
    return [found("pid file", f"{names}: the daemon that wrote it is gone", remedy)]


def _lives(pid_file: Path, name: str, proc: Path) -> bool:
    try:
        status = (proc / pid_file.read_text().strip() / "status").read_text()
    except (OSError, ValueError):
        return False
    fields = dict(line.partition(":")[::2] for line in status.splitlines())
    return (
        fields.get("Name", "").strip() == name and fields.get("State", "Z").strip()[0] not in "ZX"
    )


def _permission_denied(engine: Engine) -> bool:
    socket = Path(engine.host.removeprefix("unix://"))
    return engine.is_local and socket.exists() and not os.access(socket, os.W_OK)


def _engine(engine: Engine, version: dict[str, Any]) -> Finding:
    source = "DOCKER_HOST" if os.environ.get("DOCKER_HOST") else "default socket"
    detail = f"Docker {version['Version']} at {engine.host} ({source})"
    major = re.match(r"\d+", version["Version"])
    if major and int(major[0]) < _OLDEST_ENGINE:
        return warn("engine", detail, f"update to Docker Engine {_OLDEST_ENGINE}.10 or newer")
    if not engine.is_local:
        return warn(
            "engine",
            f"{detail}: directories of this machine cannot be mounted there",
            "agent workflows need an engine on this machine (unix://)",
        )
    return ok("engine", detail)


def _plug_ins() -> list[Finding]:
    compose = _docker("compose", "version", "--short")
    buildx = _docker("buildx", "version")
    return [
        ok("compose", f"Docker Compose {compose}")
        if compose
        else warn("compose", "not found", f"{_FOR_COMPOSE_TASKS} docker-compose"),
        ok("buildx", buildx.partition(" ")[2])
        if buildx
        else warn("buildx", "not found", f"{_FOR_COMPOSE_TASKS} docker-buildx"),
    ]


def _buildkit() -> Finding:
    builder = _docker("buildx", "inspect") or ""
    found = dict(line.partition(":")[::2] for line in builder.splitlines())
    status, version = found.get("Status", "").strip(), found.get("BuildKit version", "").strip()
    if status == "running":
        return ok("buildkit", f"running ({version or 'version unknown'})")
    return warn(
        "buildkit",
        "no builder runs",
        "Dockerfiles with RUN --mount, COPY --link or here-documents need it: install "
        "docker-buildx and check `docker buildx inspect`",
    )


def _docker(*arguments: str) -> str | None:
    """What the Docker client prints, or ``None`` when it fails or is not there."""
    try:
        done = subprocess.run(
            ["docker", *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def _base_image(host: str) -> Finding:
    import docker
    import docker.errors
    import requests

    from sandbox_images.base import BASE_IMAGE, base_image_status
    from sandbox_images.errors import BaseImageError

    client = docker.DockerClient(base_url=host, timeout=20)
    try:
        status = base_image_status(client)
    except (docker.errors.DockerException, requests.RequestException, BaseImageError) as exc:
        return warn("base image", str(exc), "check the engine")
    finally:
        client.close()
    if status.state == "missing":
        remedy = f"`make setup` has it built or pulled; or docker pull {BASE_IMAGE}"
        return warn("base image", f"{BASE_IMAGE} is not on the engine", remedy)
    detail = f"{BASE_IMAGE} ({status.state}, {status.megabytes} MB)"
    if status.state == "outdated":
        return warn("base image", detail, "`make setup` builds it anew")
    return ok("base image", detail)


async def _sandboxes(engine: Engine) -> Finding:
    try:
        found = await list_sandboxes(engine)
    except EngineError as exc:
        return warn("sandboxes", str(exc), "check the engine")
    kept = sum(sandbox.kept for sandbox in found)
    stale = sum(sandbox.stale for sandbox in found)
    detail = f"{len(found)} in the engine, {kept} kept, {stale} stale"
    if stale:
        return warn("sandboxes", detail, "osmosis sandboxes rm --stale")
    return ok("sandboxes", detail)


def _engine_disk(engine: Engine, info: dict[str, Any]) -> list[Finding]:
    root = Path(info.get("DockerRootDir") or "/nonexistent")
    try:
        visible = engine.is_local and root.is_dir()
    except PermissionError:
        visible = False
    return [disk("disk (engine)", root)] if visible else []
