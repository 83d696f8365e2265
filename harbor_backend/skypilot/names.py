"""Names of sandboxes: legal for the platform, and telling whose they are."""

import hashlib
import re
import uuid

MAX_LENGTH = 53
"""The platform's limit; names are DNS-1123 labels besides."""

PREFIX = "osm"
_SLUG, _DIGEST, _UNIQUE = 6, 6, 5
_NAME = re.compile(rf"{PREFIX}-([0-9a-f]{{12}}-[0-9a-f]{{16}})-([a-z0-9][a-z0-9-]*)-[0-9a-f]+")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,51}[a-z0-9])?")


def sandbox_name(instance: str, rollout_id: str) -> str:
    """Return a fresh name that carries the engine's instance id and the rollout.

    A rollout id has no bound, so its part is a readable beginning and a hash.

    Raises:
        ValueError: the instance id is not of the form that fits.
    """
    name = f"{PREFIX}-{instance}-{rollout_part(rollout_id)}-{uuid.uuid4().hex[:_UNIQUE]}"
    if len(name) > MAX_LENGTH or instance_of(name) != instance:
        raise ValueError(f"instance {instance!r} does not fit the name of a sandbox: {name!r}")
    return name


def rollout_part(rollout_id: str) -> str:
    """The part of a sandbox's name that stands for its rollout."""
    slug = re.sub(r"[^a-z0-9]+", "-", rollout_id.lower())[:_SLUG].strip("-") or "r"
    digest = hashlib.sha256(rollout_id.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return f"{slug}-{digest}"


def instance_of(name: str) -> str | None:
    """The instance id in a sandbox's name; ``None`` for a name that is not ours."""
    found = _NAME.fullmatch(name)
    return None if found is None else found[1]


def rollout_of(name: str) -> str | None:
    """The rollout's part in a sandbox's name; ``None`` for a name that is not ours."""
    found = _NAME.fullmatch(name)
    return None if found is None else found[2]


def checked_label(value: str, field: str) -> str:
    """Return a name that a person chose, such as a pool's.

    Raises:
        ValueError: it is no DNS-1123 label of at most 53 characters.
    """
    if _LABEL.fullmatch(value) is None:
        raise ValueError(
            f"{field}={value!r} must be 1 to {MAX_LENGTH} lower-case letters, digits and dashes, "
            "with no dash at either end"
        )
    return value
