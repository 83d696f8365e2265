"""The base image: the engine's own, else a registry's, else one built from this machine's release.

Dockerfiles that begin `FROM python:3.12-slim` build on it unchanged. The image built here
answers to that name, but is labelled as ours.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import docker
import docker.errors
import platformdirs
import requests
from filelock import BaseFileLock, FileLock

from sandbox_images import bootstrap
from sandbox_images.errors import BaseImageError
from sandbox_images.interpreter import this_interpreter
from sandbox_images.recipe import IMAGE_LABEL, RECIPE_LABEL, read_recipe

BASE_IMAGE = "python:3.12-slim"

_REGISTRY_ANSWER_SECONDS = 20
_TRANSFER_SECONDS = 900
_CHUNK_BYTES = 1 << 20

Report = Callable[[str], None]


@dataclass(frozen=True)
class BaseImageStatus:
    """The base image as the engine has it.

    Attributes:
        state: `missing`, `official` (not made here), `current` (made here from today's recipe)
            or `outdated` (made here from another one).
        image_id: the engine's id of it; empty when missing.
        megabytes: its size.
    """

    state: Literal["missing", "official", "current", "outdated"]
    image_id: str = ""
    megabytes: int = 0


def base_image_present(client: docker.DockerClient) -> bool:
    """Whether the engine has an image that answers to `BASE_IMAGE`, whoever made it."""
    return base_image_status(client).state != "missing"


def base_image_status(client: docker.DockerClient) -> BaseImageStatus:
    """Look the base image up in the engine."""
    try:
        image = client.images.get(BASE_IMAGE)
    except docker.errors.ImageNotFound:
        return BaseImageStatus("missing")
    state: Literal["official", "current", "outdated"] = "official"
    if image.labels.get(IMAGE_LABEL) == "base":
        made_from = image.labels.get(RECIPE_LABEL)
        state = "current" if made_from == read_recipe().digest() else "outdated"
    return BaseImageStatus(state, str(image.id), int(image.attrs["Size"]) // 1_000_000)


def fetch_base_image(
    client: docker.DockerClient, report: Report = print, *, registry: bool = True
) -> bool:
    """Have the base image without building it: from the engine, else from a registry.

    Args:
        client: the engine to look in.
        report: receives one short line per step.
        registry: whether a registry may be asked.

    Returns:
        Whether it is there now. An image that was made here from another recipe counts as not
        there; an unreachable registry is an ordinary answer and not an error.
    """
    status = base_image_status(client)
    if status.state in {"official", "current"}:
        report(f"{BASE_IMAGE}: there ({status.state}, {status.megabytes} MB)")
        return True
    if not registry or not _registry_answers():
        return False
    report(f"{BASE_IMAGE}: pulling from the registry")
    try:
        # The transfer gets its own, longer limit than ordinary engine calls.
        with _engine(_TRANSFER_SECONDS) as patient:
            name, tag = BASE_IMAGE.split(":")
            patient.images.pull(name, tag)
    except (docker.errors.APIError, requests.RequestException) as error:
        report(f"{BASE_IMAGE}: the registry answered, but the pull failed: {error}")
        return False
    return True


def build_base_image(report: Report = print) -> str:
    """Build the base image from this machine's own Debian release, without a registry.

    Returns:
        The id of the new image, which now has the name `BASE_IMAGE`.

    Raises:
        BaseImageError: it cannot be built here; the message holds the builder's last lines.
    """
    recipe = read_recipe()
    python = this_interpreter()
    release = recipe.release.codename
    report(f"{BASE_IMAGE}: building from Debian {release} with Python {python.version}")
    name, tag = BASE_IMAGE.split(":")
    with tempfile.TemporaryDirectory(prefix="osmosis-base-") as workspace:
        # mmdebstrap gives up root before it enters its root file system.
        Path(workspace).chmod(0o755)
        root = bootstrap.build_root(recipe, python, Path(workspace))
        try:
            with _engine(_TRANSFER_SECONDS) as patient, root.open("rb") as stream:
                # The library announces a chunked body; only an iterator is sent as one.
                chunks = iter(partial(stream.read, _CHUNK_BYTES), b"")
                patient.api.import_image_from_stream(
                    chunks, repository=name, tag=tag, changes=recipe.changes()
                )
                image = patient.images.get(BASE_IMAGE)
        except (docker.errors.DockerException, requests.RequestException) as error:
            raise BaseImageError(f"the engine refused the new {BASE_IMAGE}: {error}") from error
    if image.labels.get(RECIPE_LABEL) != recipe.digest():
        raise BaseImageError(f"the engine took the new {BASE_IMAGE} but dropped its labels")
    report(f"{BASE_IMAGE}: built ({int(image.attrs['Size']) // 1_000_000} MB)")
    return str(image.id)


def ensure_base_image(
    client: docker.DockerClient,
    *,
    force: bool = False,
    registry: bool = True,
    report: Report = print,
) -> str:
    """Make sure that the engine has the base image.

    Only one process at a time does this; a second one waits and finds the first one's image.

    Args:
        client: the engine to look in.
        force: build it here even if the engine or a registry has one.
        registry: whether a registry may be asked.
        report: receives one short line per step.

    Returns:
        `BASE_IMAGE`, the name to use in `FROM`.

    Raises:
        BaseImageError: it is neither there, nor to be pulled, nor to be built.
    """
    with _only_one():
        if force or not fetch_base_image(client, report, registry=registry):
            build_base_image(report)
    return BASE_IMAGE


def _registry_answers() -> bool:
    """Whether the engine's registry knows the image, asked with little patience."""
    try:
        with _engine(_REGISTRY_ANSWER_SECONDS) as hasty:
            hasty.images.get_registry_data(BASE_IMAGE)
    except (docker.errors.APIError, requests.RequestException):
        return False
    return True


@contextmanager
def _engine(timeout: int) -> Iterator[docker.DockerClient]:
    client = docker.from_env(timeout=timeout)
    try:
        yield client
    finally:
        client.close()


def _only_one() -> BaseFileLock:
    cache = platformdirs.user_cache_path("osmosis", ensure_exists=True)
    return FileLock(cache / "base-image.lock")
