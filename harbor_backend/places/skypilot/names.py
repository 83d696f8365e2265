"""Names of sandboxes: legal for the platform, and telling whose they are."""

import hashlib
import re
import uuid

MAX_LENGTH = 53
"""The platform's limit; names are DNS-1123 labels besides."""

PREFIX = "osm"
_SLUG, _DIGEST, _UNIQUE = 6, 6, 6
_HARBORS = "hb-"
_NAME = re.compile(
    rf"(?:{_HARBORS})?{PREFIX}-([0-9a-f]{{12}}-[0-9a-f]{{8}})-([a-z0-9][a-z0-9-]*)-[0-9a-z]+"
)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,51}[a-z0-9])?")


def sandbox_name(instance: str, rollout_id: str) -> str:
    """Return a fresh name that carries this process's instance id and the rollout.

    A rollout id has no bound, so its part is a readable beginning and a hash.

    Raises:
        ValueError: the instance id is not of the form that fits.
    """
    name = f"{PREFIX}-{instance}-{rollout_part(rollout_id)}-{uuid.uuid4().hex[:_UNIQUE]}"
    if len(name) > MAX_LENGTH or instance_of(name) != instance:
        raise ValueError(f"instance {instance!r} does not fit the name of a sandbox: {name!r}")
    return name


def telling_trial_name(instance: str, rollout_id: str) -> str:
    """Return a fresh name for a trial, of which Harbor's own environment makes its sandboxes'.

    They are ``hb-<trial>-env``, ``hb-<trial>-grader`` and the like, and tell the
    same as ours. Harbor cuts a longer one at 42 characters and adds a hash,
    which is where the trial's name ends.
    """
    return f"{PREFIX}-{instance}-{_digest(rollout_id)}-{uuid.uuid4().hex[:_UNIQUE]}"


def is_of_trial(name: str, trial: str) -> bool:
    """Whether Harbor's own environment made a sandbox of this name for a trial."""
    return name.startswith(f"{_HARBORS}{trial}")


def rollout_part(rollout_id: str) -> str:
    """The part of a sandbox's name that stands for its rollout; it ends in the rollout's hash."""
    slug = re.sub(r"[^a-z0-9]+", "-", rollout_id.lower())[:_SLUG].strip("-") or "r"
    return f"{slug}-{_digest(rollout_id)}"


def _digest(rollout_id: str) -> str:
    return hashlib.sha256(rollout_id.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]


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
