"""The image of a task's environment, built once per content hash."""

import asyncio
import contextlib
import fcntl
import os
import re
import subprocess
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harbor.environments.base import SandboxBuildFailedError
from harbor.environments.definition import environment_content_hash

from harbor_backend import labels
from harbor_backend.environments.channel_dir import private_dir
from harbor_backend.environments.engine import Engine, EngineError

_LAST_LINES = 25
_BUILDKIT_SYNTAX = re.compile(
    r"^\s*#\s*syntax\s*=|^\s*(?:RUN|COPY|ADD)\b[^\n]*--(?:mount|link|network|security|parents|"
    r"exclude|checksum)\b|<<-?['\"]?\w+",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Image:
    """What of an image decides how a sandbox is started from it."""

    reference: str
    user: str
    entrypoint: tuple[str, ...]


_known: weakref.WeakKeyDictionary[Engine, dict[str, Image]] = weakref.WeakKeyDictionary()
_locks: weakref.WeakKeyDictionary[Engine, dict[str, asyncio.Lock]] = weakref.WeakKeyDictionary()


async def ensure_image(
    engine: Engine, directory: Path, docker_image: str | None, *, force_build: bool = False
) -> Image:
    """Return the image for an environment directory, or the prebuilt one it names.

    Raises:
        SandboxBuildFailedError: the Dockerfile does not build (the text holds
            the build's last lines), or the prebuilt image cannot be had.
    """
    prebuilt = docker_image and not (force_build and (directory / "Dockerfile").exists())
    reference = (
        str(docker_image)
        if prebuilt
        else f"{labels.PREFIX}-env:{environment_content_hash(directory, truncate=24)}"
    )
    known = _known.setdefault(engine, {})
    if reference in known and not force_build:
        return known[reference]
    async with build_lock(engine, reference):
        image = None if force_build and not prebuilt else await _inspect(engine, reference)
        if image is None:
            if prebuilt:
                await _pull(engine, reference)
            else:
                await asyncio.to_thread(_build, engine.host, directory, reference)
            image = await _inspect(engine, reference)
        if image is None:
            raise SandboxBuildFailedError(f"The image {reference} vanished after it was made")
        known[reference] = image
        return image


def forget_image(engine: Engine, image: Image) -> None:
    """Look the image up again next time: somebody removed it from the engine."""
    _known.get(engine, {}).pop(image.reference, None)


@asynccontextmanager
async def build_lock(engine: Engine, reference: str) -> AsyncIterator[None]:
    """One builder per image, in this process and in others of this user."""
    async with _locks.setdefault(engine, {}).setdefault(reference, asyncio.Lock()):
        name = re.sub(r"[^a-zA-Z0-9.-]", "_", reference)
        path = private_dir() / f"build-{name}.lock"
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


async def _inspect(engine: Engine, reference: str) -> Image | None:
    try:
        record: dict[str, Any] = await engine.call("GET", f"/images/{reference}/json")
    except EngineError as exc:
        if exc.status == 404:
            return None
        raise
    config = record.get("Config") or {}
    return Image(reference, config.get("User") or "", tuple(config.get("Entrypoint") or ()))


async def _pull(engine: Engine, reference: str) -> None:
    name, _, tag = reference.partition("@")
    if not tag:
        name, colon, tag = reference.rpartition(":")
        if not colon or "/" in tag:
            name, tag = reference, "latest"
    try:
        await engine.call(
            "POST", "/images/create", params={"fromImage": name, "tag": tag}, timeout=1800
        )
    except EngineError as exc:
        raise SandboxBuildFailedError(
            f"The image {reference!r} is not on this machine and cannot be pulled: {exc}. Load or "
            "tag it locally, or give the task a Dockerfile"
        ) from exc


def _build(host: str, directory: Path, tag: str) -> None:
    dockerfile = directory / "Dockerfile"
    if not dockerfile.is_file():
        raise SandboxBuildFailedError(
            f"{directory} holds no Dockerfile and the task names no docker_image: add one of them"
        )
    try:
        if _BUILDKIT_SYNTAX.search(dockerfile.read_text(errors="replace")):
            _build_with_buildkit(host, directory, tag)
        else:
            _build_with_engine(host, directory, tag)
    except _BuildFailure as exc:
        raise SandboxBuildFailedError(
            f"{dockerfile} does not build. Its last lines:\n{exc}"
        ) from exc


class _BuildFailure(Exception):
    """Holds the last lines of a failed build."""


def _build_with_engine(host: str, directory: Path, tag: str) -> None:
    import docker
    from docker.errors import APIError, BuildError

    lines: list[str] = []
    client = docker.DockerClient(base_url=host, timeout=3600)
    try:
        stream = client.api.build(
            path=str(directory), tag=tag, rm=True, forcerm=True, decode=True,
            labels={labels.IMAGE: "environment"},
        )  # fmt: skip
        for event in stream:
            lines += str(event.get("stream") or event.get("error") or "").splitlines()
            if "error" in event:
                raise _BuildFailure(_tail(lines))
    except (APIError, BuildError) as exc:
        raise _BuildFailure(_tail([*lines, str(exc)])) from exc
    finally:
        with contextlib.suppress(OSError):
            client.close()


def _build_with_buildkit(host: str, directory: Path, tag: str) -> None:
    command = [
        "docker", "--host", host, "buildx", "build", "--load", "--progress", "plain",
        "--label", f"{labels.IMAGE}=environment", "--tag", tag, str(directory),
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", timeout=3600, check=False,
        )  # fmt: skip
    except FileNotFoundError as exc:
        raise _BuildFailure(
            "it needs BuildKit (RUN --mount, COPY --link or here-documents), and there is no "
            "docker command; install docker-cli and docker-buildx"
        ) from exc
    if done.returncode != 0:
        raise _BuildFailure(_tail(done.stdout.splitlines()))


def _tail(lines: list[str]) -> str:
    return "\n".join(line for line in lines[-_LAST_LINES:] if line.strip())
