"""What a check found."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """``warn``: something works less well or not for every task; ``fail``: rollouts will fail."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """One line of the report; all but ``ok`` come with a remedy."""

    name: str
    level: Level
    detail: str
    remedy: str | None = None


def ok(name: str, detail: str) -> Finding:
    """Nothing is wrong."""
    return Finding(name, Level.OK, detail)


def warn(name: str, detail: str, remedy: str) -> Finding:
    """Something works less well, or not for every task."""
    return Finding(name, Level.WARN, detail, remedy)


def fail(name: str, detail: str, remedy: str) -> Finding:
    """Rollouts will fail."""
    return Finding(name, Level.FAIL, detail, remedy)
