"""Where trials run that do not run on this machine, from the command line."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from osmosis_ai.cli.errors import CliError
from osmosis_ai.cli.trials.choices import EnvironmentName

REMOTE = (EnvironmentName.SKYPILOT, EnvironmentName.SKY_DOCKER)

_LISTS = {"hosts", "secrets"}


@dataclass(frozen=True)
class Remote:
    """An environment elsewhere, its arguments, and how its sandboxes reach this process.

    ``slots`` bounds the trials at a time where the hosts do.
    """

    environment: EnvironmentName
    options: dict[str, Any]
    agent_base_url: str | None
    agent_bind: str | None
    slots: int | None


def make_remote(
    environment: EnvironmentName,
    options: Sequence[str],
    agent_base_url: str | None,
    agent_bind: str | None,
) -> Remote | None:
    """Check what was said about a remote environment; ``None`` for one of this machine.

    Raises:
        CliError: an option is malformed, unknown, or belongs to another environment.
    """
    addresses = {"--agent-base-url": agent_base_url, "--agent-bind": agent_bind}
    for name, value in addresses.items():
        if value is not None and environment is not EnvironmentName.SKYPILOT:
            raise CliError(
                f"{name} is for --environment skypilot; {environment} reaches the model without it"
            )
    if environment not in REMOTE:
        if options:
            raise CliError(f"--option is for {' and '.join(REMOTE)}; {environment} takes none")
        return None
    given = dict(map(_parsed, options))
    slots = None
    if environment is EnvironmentName.SKY_DOCKER:
        from harbor_backend.admin import fleet_settings

        try:
            slots = fleet_settings(given).slots
        except ValueError as exc:
            raise CliError(" ".join(str(exc).split())) from exc
    return Remote(environment, given, agent_base_url, agent_bind, slots)


def _parsed(option: str) -> tuple[str, Any]:
    """``name=value``: JSON where it is JSON, a list where one is wanted, else text."""
    name, equals, text = option.partition("=")
    if not name or not equals:
        raise CliError(f"--option {option} must read NAME=VALUE")
    try:
        return name, json.loads(text)
    except ValueError:
        return name, [part.strip() for part in text.split(",")] if name in _LISTS else text
