"""What an image says about how a sandbox is started from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

_NANOSECONDS = 1e9
# What an engine takes where an image leaves a number out.
_INTERVAL_SEC = _TIMEOUT_SEC = 30.0
_RETRIES = 3


@dataclass(frozen=True)
class Healthcheck:
    """An image's ``HEALTHCHECK``; the engine runs it."""

    test: tuple[str, ...]
    interval_sec: float
    timeout_sec: float
    start_period_sec: float
    retries: int

    @property
    def longest_sec(self) -> float:
        """When an engine must have said whether it passes, if nothing holds it up."""
        return self.start_period_sec + (self.retries + 1) * (self.interval_sec + self.timeout_sec)

    @property
    def command(self) -> str:
        """The command, for people."""
        return " ".join(self.test[1:])

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Self | None:
        """From an image's configuration; ``None`` where there is none, or it is switched off."""
        test = tuple((given or {}).get("Test") or ())
        if given is None or not test or test[0] == "NONE":
            return None

        def seconds(name: str, default: float) -> float:
            return (given.get(name) or 0) / _NANOSECONDS or default

        return cls(
            test,
            interval_sec=seconds("Interval", _INTERVAL_SEC),
            timeout_sec=seconds("Timeout", _TIMEOUT_SEC),
            start_period_sec=seconds("StartPeriod", 0.0),
            retries=given.get("Retries") or _RETRIES,
        )


@dataclass(frozen=True)
class Image:
    """An image that the engine has, under the name that containers are made from."""

    reference: str
    id: str
    is_published: bool
    """Whether a registry has it, so that other machines can have the same."""
    user: str
    entrypoint: tuple[str, ...]
    healthcheck: Healthcheck | None
    names_home: bool
    """Whether its environment sets ``HOME``, which then is that of every user."""

    @property
    def is_passive(self) -> bool:
        """Whether nothing of it runs by itself, so that anything may be the first process."""
        return not self.entrypoint and self.healthcheck is None

    @classmethod
    def of(cls, reference: str, record: Mapping[str, Any]) -> Self:
        """From the engine's record."""
        config = record.get("Config") or {}
        return cls(
            reference,
            id=record["Id"],
            is_published=bool(record.get("RepoDigests")),
            user=config.get("User") or "",
            entrypoint=tuple(config.get("Entrypoint") or ()),
            healthcheck=Healthcheck.of(config.get("Healthcheck")),
            names_home=any(entry.startswith("HOME=") for entry in config.get("Env") or ()),
        )
