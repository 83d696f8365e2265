"""Images for sandboxes: a task's own, with the runtime as one layer on top, in a registry."""

import asyncio
import contextlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

from harbor.environments.base import SandboxBuildFailedError
from harbor.environments.definition import environment_content_hash

from harbor_backend import labels
from harbor_backend.environments.engine import Engine
from harbor_backend.environments.images import Image, build_lock, ensure_image
from harbor_backend.skypilot.archives import ARCHIVE, runtime_archive
from harbor_backend.skypilot.reach import reaches_out
from osmosis_ai.rollout.container.files import RUNTIME_DIR

USER_VARIABLE = "OSMOSIS_IMAGE_USER"
"""In a baked image whose own user is not root: that user."""

_PUSH_SEC = 1800
_LOOK_SEC = 60
_LAST_LINES = 15

_pushed: set[str] = set()


def image_reference(registry: str, task: str, directory: Path, runtime: Path | None) -> str:
    """Where a task's image is in a registry: by content of task and runtime."""
    repository = re.sub(r"-+", "-", re.sub(r"[^a-z0-9._/-]+", "-", task.lower())).strip("-/._")
    tag = environment_content_hash(directory, truncate=24)
    if runtime is not None:
        tag += f"-{runtime.name[:12]}"
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

    Both are skipped for content that the registry has already.

    Raises:
        SandboxBuildFailedError: it does not build, or cannot be pushed.
        EngineError: the engine of this machine does not answer.
    """
    reference = image_reference(registry, task, directory, runtime)
    if reference in _pushed and not force_build:
        return reference
    async with build_lock(engine, reference):
        if reference in _pushed and not force_build:
            return reference
        if force_build or not await asyncio.to_thread(_is_in_registry, engine.host, reference):
            base = await ensure_image(engine, directory, None, force_build=force_build)
            await asyncio.to_thread(_bake, engine.host, base, runtime, reference)
            await asyncio.to_thread(_push, engine.host, reference)
        _pushed.add(reference)
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
        command = ["build", "-q", "--label", f"{labels.IMAGE}=environment", "-t", reference, folder]
        _docker(host, command, _PUSH_SEC, f"baking the runtime into {reference}")


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        target.write_bytes(source.read_bytes())


def _push(host: str, reference: str) -> None:
    _docker(host, ["push", "-q", reference], _PUSH_SEC, f"pushing {reference}")


def _is_in_registry(host: str, reference: str) -> bool:
    insecure = [] if reaches_out(f"http://{reference}") else ["--insecure"]
    with contextlib.suppress(SandboxBuildFailedError):
        _docker(host, ["manifest", "inspect", *insecure, reference], _LOOK_SEC, "looking it up")
        return True
    return False


def _docker(host: str, arguments: list[str], timeout_sec: float, doing: str) -> None:
    """Run the Docker client, which knows the user's registries and their credentials."""
    try:
        done = subprocess.run(
            ["docker", "--host", host, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout_sec,
            check=False,
        )
    except FileNotFoundError as exc:
        raise SandboxBuildFailedError(
            f"{doing} needs the docker command, which is not here: install docker-cli, or set the "
            "task's docker_image, or a pool"
        ) from exc
    except subprocess.TimeoutExpired as exc:
        raise SandboxBuildFailedError(f"{doing} took longer than {timeout_sec:g}s") from exc
    if done.returncode != 0:
        lines = "\n".join(done.stdout.splitlines()[-_LAST_LINES:])
        raise SandboxBuildFailedError(
            f"{doing} failed (is the engine logged in there? docker login):\n{lines}"
        )
