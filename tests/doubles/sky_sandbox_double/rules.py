"""What the platform's documentation says that it refuses."""

import re

from .errors import SandboxError

MAX_NAME = 53
MAX_SECONDS = 3600
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def checked_name(name: object) -> str:
    """A DNS-1123 label of at most 53 characters."""
    if not isinstance(name, str) or len(name) > MAX_NAME or not _LABEL.fullmatch(name):
        raise SandboxError(f"name {name!r} is no DNS-1123 label of at most {MAX_NAME} characters")
    return name


def checked_seconds(value: object) -> float:
    """A command's budget, which the server caps."""
    if not isinstance(value, int | float) or not 0 < value <= MAX_SECONDS:
        raise SandboxError(f"timeout_seconds must be above 0 and at most {MAX_SECONDS}: {value!r}")
    return float(value)


def check_exclusion(pool: object, given: dict[str, object]) -> None:
    """A pool brings image, shape and network: none of them may be given beside it."""
    beside = sorted(name for name, value in given.items() if value is not None)
    if pool is not None and beside:
        raise SandboxError(f"pool={pool!r} excludes {', '.join(beside)}")


def checked_env(env: object) -> dict[str, str]:
    """Variables are strings."""
    if env is None:
        return {}
    if not isinstance(env, dict) or not all(
        isinstance(part, str) for pair in env.items() for part in pair
    ):
        raise SandboxError(f"env must map strings to strings: {env!r}")
    return dict(env)
