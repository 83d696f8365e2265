"""When to try a call again."""

from datetime import datetime

from osmosis_ai.rollout.http_date import seconds_until

_FIRST_PAUSE_SEC = 0.2
_LONGEST_PAUSE_SEC = 2.0


def backoff_sec(attempt: int) -> float:
    """How long to wait after the given attempt, counted from one, was refused."""
    pause: float = _FIRST_PAUSE_SEC * 2 ** (attempt - 1)
    return min(_LONGEST_PAUSE_SEC, pause)


def retry_after_sec(value: str | None, *, now: datetime | None = None) -> float | None:
    """Read a ``Retry-After`` header, seconds or date; ``None`` when it says nothing usable."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    seconds = seconds_until(value, now)
    return None if seconds is None else max(0.0, seconds)
