"""The ``Retry-After`` header of an answer that says: not now."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_SEC = 86_400.0
"""No header makes anybody wait longer than a day, whatever it holds."""

_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?")


def retry_after_sec(value: str | None, *, now: datetime | None = None) -> float | None:
    """Return how many seconds a header asks to wait, from 0 to ``LONGEST_SEC``.

    Understood are seconds, also with a fraction, and HTTP dates (RFC 9110, section
    10.2.3); one that is over is 0. ``None`` is a header that is missing or says
    neither. ``now`` is the time that dates are compared with.
    """
    text = (value or "").strip()
    seconds = float(text) if _SECONDS.fullmatch(text) else _until(text, now)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_SEC)


def _until(date: str, now: datetime | None) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:  # the offset -0000: UTC, of a place that is not told
        moment = moment.replace(tzinfo=UTC)
    return (moment - (now or datetime.now(UTC))).total_seconds()
