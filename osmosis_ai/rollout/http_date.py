"""Dates in HTTP headers."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def seconds_until(date: str, now: datetime | None = None) -> float | None:
    """How far off an HTTP date is, negative when it is over; ``None`` when it is no date."""
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - (now or datetime.now(UTC))).total_seconds()
