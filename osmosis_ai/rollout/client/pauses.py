"""How long to wait before asking again. Decisions only, no I/O."""

from collections.abc import Iterator
from datetime import datetime

from osmosis_ai.rollout.http_date import seconds_until

SHORTEST_RETRY_AFTER_SEC = 0.05
LONGEST_RETRY_AFTER_SEC = 60.0
_LONGEST_SEC = 8.0


def pauses(first_sec: float) -> Iterator[float]:
    """Pauses in seconds that double up to eight, without end."""
    pause = first_sec
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_SEC)


def retry_after_sec(value: str | None, *, now: datetime | None = None) -> float:
    """Read a ``Retry-After`` header, seconds or date, within 0.05 to 60; 5 if it says nothing."""
    seconds = 5.0
    if value is not None:
        try:
            seconds = float(value)
        except ValueError:
            until = seconds_until(value, now)
            seconds = seconds if until is None else until
    if not seconds >= SHORTEST_RETRY_AFTER_SEC:  # also what is not a number
        return SHORTEST_RETRY_AFTER_SEC
    return min(seconds, LONGEST_RETRY_AFTER_SEC)
