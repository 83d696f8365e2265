"""The ``docker`` command, for what it alone does: builds, and the user's registries.

Everything else goes over the Engine API.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harbor_backend.errors import HarborBackendError
from harbor_backend.places import labels
from harbor_backend.places.docker.streams import plain_text

_LAST_LINES = 25
_LAST_CHARACTERS = 8000
# Clients with BuildKit in them, up to those that leave it to the plug-in.
_OLDEST_BUILDKIT, _OLDEST_PLUG_IN = 19, 23
_LOOK_SEC = 30


class DockerCommandError(HarborBackendError, RuntimeError):
    """The command ended with an error; the text is its last lines, or why it did not run."""


@dataclass(frozen=True)
class Builder:
    """A way to build: the command's first arguments, and variables for it."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


_CLASSIC = Builder(("build",), {"DOCKER_BUILDKIT": "0"})
_NO_BUILDKIT = (
    "(Built without BuildKit, which is what Harbor builds with: docker buildx is not installed, "
    "does not reach this engine, or DOCKER_BUILDKIT=0 is set)"
)

_found = dict[str, Builder]()


def run_docker(
    host: str,
    arguments: Sequence[str],
    *,
    timeout_sec: float,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run the command against one engine and return what it printed; blocks.

    Raises:
        DockerCommandError: it is not here, failed, or took longer than ``timeout_sec``.
    """
    try:
        done = subprocess.run(
            ["docker", "--host", host, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, **(environment or {})},
            timeout=timeout_sec,
            check=False,
        )
    except FileNotFoundError as exc:
        raise DockerCommandError(
            "there is no docker command here: install docker-cli and docker-buildx"
        ) from exc
    except subprocess.TimeoutExpired as exc:
        raise DockerCommandError(f"it took longer than {timeout_sec:g}s") from exc
    if done.returncode != 0:
        raise DockerCommandError(_tail(done.stdout))
    return done.stdout


def builder(host: str) -> Builder:
    """How images are built on an engine: with BuildKit where it is, else the engine's own way.

    An engine is asked until BuildKit is found. ``DOCKER_BUILDKIT=0`` is a user's word for the
    second.
    """
    if os.environ.get("DOCKER_BUILDKIT", "").lower() in {"0", "false"}:
        return _CLASSIC
    if host not in _found and (buildkit := _buildkit(host)):
        _found[host] = buildkit
    return _found.get(host, _CLASSIC)


def build_image(host: str, directory: Path, tag: str, *, timeout_sec: float) -> None:
    """Build the Dockerfile of a directory; what is unchanged comes from the builder's cache.

    Raises:
        DockerCommandError: it does not build.
    """
    how = builder(host)
    label = f"{labels.IMAGE}=environment"
    command = [*how.arguments, "--label", label, "--tag", tag, str(directory)]
    try:
        run_docker(host, command, timeout_sec=timeout_sec, environment=how.environment)
    except DockerCommandError as exc:
        if how is _CLASSIC and exc.__cause__ is None:  # it ran, and failed
            raise DockerCommandError(f"{exc}\n{_NO_BUILDKIT}") from exc
        raise


def _buildkit(host: str) -> Builder | None:
    if _has_buildx(host):
        return Builder(("buildx", "build", "--load", "--progress", "plain"))
    if _brings_buildkit(host):
        return Builder(("build", "--progress", "plain"), {"DOCKER_BUILDKIT": "1"})
    return None


def _has_buildx(host: str) -> bool:
    """Whether the command has the plug-in, and the engine what that asks for."""
    try:
        found = run_docker(host, ["buildx", "inspect"], timeout_sec=_LOOK_SEC)
    except DockerCommandError:
        return False
    return "Error:" not in found


def _brings_buildkit(host: str) -> bool:
    """Whether the command is of the old ones that drive BuildKit without a plug-in."""
    try:
        version = run_docker(
            host, ["version", "--format", "{{.Client.Version}}"], timeout_sec=_LOOK_SEC
        )
    except DockerCommandError:
        return False
    major = version.strip().partition(".")[0]
    return major.isdecimal() and _OLDEST_BUILDKIT <= int(major) < _OLDEST_PLUG_IN


def _tail(output: str) -> str:
    lines = [line for line in output.splitlines()[-_LAST_LINES:] if line.strip()]
    return plain_text("\n".join(lines), _LAST_CHARACTERS)
