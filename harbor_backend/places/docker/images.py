"""The image of a task's environment, built once for what it is made of."""

import asyncio
import hashlib
import json
import math
import os
import re
import stat
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from filelock import AsyncFileLock
from harbor.environments.base import SandboxBuildFailedError
from harbor.environments.definition import environment_content_hash

from harbor_backend.places import labels
from harbor_backend.places.channel_dir import private_dir
from harbor_backend.places.docker.bases import base_images
from harbor_backend.places.docker.client import DockerCommandError, build_image
from harbor_backend.places.docker.engine import Engine, EngineError
from harbor_backend.places.docker.image import Image

_BUILD_SEC = 3600
_KEY_LENGTH = 24
# A name may mean another image at any time; so long, nobody asks again.
_FRESH_SEC = 1.0
# As in Harbor's content hash.
_NOT_HASHED = frozenset({".DS_Store", ".git", "__pycache__"})

_known: weakref.WeakKeyDictionary[Engine, dict[str, Image]] = weakref.WeakKeyDictionary()
_seen: weakref.WeakKeyDictionary[Engine, dict[str, tuple[float, Image | None]]] = (
    weakref.WeakKeyDictionary()
)
_forced: weakref.WeakKeyDictionary[Engine, set[str]] = weakref.WeakKeyDictionary()
_locks: weakref.WeakKeyDictionary[Engine, dict[str, asyncio.Lock]] = weakref.WeakKeyDictionary()


async def ensure_image(
    engine: Engine, directory: Path, docker_image: str | None, *, force_build: bool = False
) -> Image:
    """Return the image for an environment directory, or the prebuilt one it names.

    ``force_build`` builds it once more in this process, and from the directory's Dockerfile
    even where a prebuilt one is named. Unchanged steps come from the builder's cache.

    Raises:
        SandboxBuildFailedError: the Dockerfile does not build (the text holds
            the build's last lines), or the prebuilt image cannot be had.
    """
    if docker_image and not (force_build and (directory / "Dockerfile").exists()):
        return await _prebuilt(engine, docker_image)
    reference = f"{labels.PREFIX}-env:{await image_key(engine, directory)}"
    known, forced = _known.setdefault(engine, {}), _forced.setdefault(engine, set())
    if reference in known and (not force_build or reference in forced):
        return known[reference]
    async with build_lock(engine, reference):
        has_to_build = force_build and reference not in forced
        image = None if has_to_build else await _inspect(engine, reference)
        if image is None:
            await asyncio.to_thread(_build, engine.host, directory, reference)
            image = await _inspect(engine, reference)
        if image is None:
            raise SandboxBuildFailedError(f"The image {reference} vanished after it was made")
        known[reference] = image
        if force_build:
            forced.add(reference)
        return image


async def image_key(engine: Engine, directory: Path, *, own_bases: bool = False) -> str:
    """A name for all that an image is made of, of which the same is not built twice.

    That is what lies in the directory, and the images of this engine that its Dockerfile
    starts from: one that was built anew, or pulled, makes another key. ``own_bases``: only
    those that no registry has, so that machines that share a registry agree on the key.
    """
    content, dockerfile = await asyncio.to_thread(_content, directory)
    bases = {name: await _base_id(engine, name, own_bases) for name in base_images(dockerfile)}
    material = json.dumps([content, bases], sort_keys=True)
    return hashlib.sha256(material.encode()).hexdigest()[:_KEY_LENGTH]


def forget_image(engine: Engine, image: Image) -> None:
    """Look the image up again next time: somebody removed it from the engine."""
    _known.get(engine, {}).pop(image.reference, None)
    _seen.get(engine, {}).pop(image.reference, None)


@asynccontextmanager
async def build_lock(engine: Engine, reference: str) -> AsyncIterator[None]:
    """One builder per image, in this process and in others of this user."""
    async with _locks.setdefault(engine, {}).setdefault(reference, asyncio.Lock()):
        name = re.sub(r"[^a-zA-Z0-9.-]", "_", reference)
        path = private_dir() / f"build-{name}.lock"
        async with AsyncFileLock(path, mode=0o600, run_in_executor=False):
            yield


async def _prebuilt(engine: Engine, reference: str) -> Image:
    """An image under a name that somebody else may give to another one at any time."""
    image = await _seen_lately(engine, reference)
    if image is None:
        async with build_lock(engine, reference):
            if (image := await _inspect(engine, reference)) is None:
                await _pull(engine, reference)
                image = await _inspect(engine, reference)
    if image is None:
        raise SandboxBuildFailedError(f"The image {reference} vanished after it was pulled")
    return image


async def _inspect(engine: Engine, reference: str) -> Image | None:
    try:
        record: dict[str, Any] = await engine.call("GET", f"/images/{reference}/json")
    except EngineError as exc:
        if exc.status == 404:
            return None
        raise
    return Image.of(reference, record)


async def _seen_lately(engine: Engine, reference: str) -> Image | None:
    """As ``_inspect``, but sandboxes that start at about the same time ask once."""
    seen = _seen.setdefault(engine, {})
    moment, image = seen.get(reference, (-math.inf, None))
    if time.monotonic() - moment > _FRESH_SEC:
        image = await _inspect(engine, reference)
        seen[reference] = time.monotonic(), image
    return image


async def _base_id(engine: Engine, reference: str, own: bool) -> str | None:
    try:
        image = await _seen_lately(engine, reference)
    except EngineError as exc:
        if own and exc.status == 0:  # where there is no engine, nothing was built
            return None
        raise
    return None if image is None or (own and image.is_published) else image.id


def _content(directory: Path) -> tuple[list[Any], str]:
    """What tells one build context from another, and its Dockerfile's text."""
    dockerfile = directory / "Dockerfile"
    text = dockerfile.read_text(errors="replace") if dockerfile.is_file() else ""
    return [environment_content_hash(directory), *_shapes(directory)], text


def _shapes(directory: Path) -> Iterator[tuple[str, int, str]]:
    """What a content hash leaves out and a build copies: modes, links, empty directories."""
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory)
        if _NOT_HASHED.isdisjoint(name.parts):
            mode = path.lstat().st_mode
            yield name.as_posix(), mode, os.readlink(path) if stat.S_ISLNK(mode) else ""


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
        build_image(host, directory, tag, timeout_sec=_BUILD_SEC)
    except DockerCommandError as exc:
        raise SandboxBuildFailedError(
            f"{dockerfile} does not build. Its last lines:\n{exc}"
        ) from exc
