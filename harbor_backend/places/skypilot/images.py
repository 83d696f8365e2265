"""Images for sandboxes: a task's own, with the runtime as one layer on top, in a registry."""

import asyncio
import contextlib
import os
import re
import tempfile
from pathlib import Path

from harbor.environments.base import SandboxBuildFailedError

from harbor_backend.places.docker.client import DockerCommandError, build_image, run_docker
from harbor_backend.places.docker.engine import Engine
from harbor_backend.places.docker.image import Image
from harbor_backend.places.docker.images import build_lock, ensure_image, image_key
from harbor_backend.places.runtime_archive import ARCHIVE, USER_VARIABLE, runtime_archive
from harbor_backend.places.skypilot.reach import reaches_out
from osmosis_ai.rollout.container.files import RUNTIME_DIR

_PUSH_SEC = 1800
_LOOK_SEC = 60

_pushed: set[str] = set()
_forced: set[str] = set()


def image_reference(registry: str, task: str, key: str, runtime: Path | None) -> str:
    """Where a task's image is in a registry: by what it is made of, and the runtime."""
    repository = re.sub(r"-+", "-", re.sub(r"[^a-z0-9._/-]+", "-", task.lower())).strip("-/._")
    tag = key if runtime is None else f"{key}-{runtime.name[:12]}"
    return f"{registry}/{repository or 'task'}:{tag}"


async def ensure_registry_image(
    engine: Engine,
    registry: str,
    task: str,
    directory: Path,
    runtime: Path | None,
    *,
    force_build: bool = False,
) -> str:
    """Build a task's image with the runtime baked in, push it, and return its reference.

    Both are skipped for what the registry has already, unless ``force_build``, once.

    Raises:
        SandboxBuildFailedError: it does not build, or cannot be pushed.
        EngineError: the engine of this machine does not answer.
    """
    key = await image_key(engine, directory, own_bases=True)
    reference = image_reference(registry, task, key, runtime)
    if reference in (_forced if force_build else _pushed):
        return reference
    async with build_lock(engine, reference):
        if reference in (_forced if force_build else _pushed):
            return reference
        if force_build or not await asyncio.to_thread(_is_in_registry, engine.host, reference):
            base = await ensure_image(engine, directory, None, force_build=force_build)
            await asyncio.to_thread(_bake, engine.host, base, runtime, reference)
            await asyncio.to_thread(_push, engine.host, reference)
        _pushed.add(reference)
        if force_build:
            _forced.add(reference)
    return reference


def _bake(host: str, base: Image, runtime: Path | None, reference: str) -> None:
    """Add the runtime's archive, which the engine unpacks, as the image's last layer.

    A sandbox is prepared by root, and nobody can become root in it later: the
    image starts as root, and tells whom commands are for.
    """
    recipe = [f"FROM {base.reference}"]
    if base.user not in {"", "root", "0"}:
        recipe += ["USER root", f"ENV {USER_VARIABLE}={base.user.partition(':')[0]}"]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="osmosis-bake-"))
        if runtime is not None:
            archive = stack.enter_context(runtime_archive(runtime))
            _link(archive.path / ARCHIVE, Path(folder, ARCHIVE))
            recipe.append(f"ADD {ARCHIVE} {RUNTIME_DIR}/")
        Path(folder, "Dockerfile").write_text("\n".join([*recipe, ""]))
        try:
            build_image(host, Path(folder), reference, timeout_sec=_PUSH_SEC)
        except DockerCommandError as exc:
            raise SandboxBuildFailedError(
                f"The runtime cannot be added to {base.reference}. The build's last lines:\n{exc}"
            ) from exc


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        target.write_bytes(source.read_bytes())


def _push(host: str, reference: str) -> None:
    """Run the Docker client, which knows the user's registries and their credentials."""
    try:
        run_docker(host, ["push", "-q", reference], timeout_sec=_PUSH_SEC)
    except DockerCommandError as exc:
        raise SandboxBuildFailedError(
            f"pushing {reference} failed (is the engine logged in there? docker login):\n{exc}"
        ) from exc


def _is_in_registry(host: str, reference: str) -> bool:
    insecure = [] if reaches_out(f"http://{reference}") else ["--insecure"]
    try:
        run_docker(host, ["manifest", "inspect", *insecure, reference], timeout_sec=_LOOK_SEC)
    except DockerCommandError:
        return False
    return True
