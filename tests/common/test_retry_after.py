"""One reader of ``Retry-After``, for everybody who is asked to come back later."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.common.retry_after import LONGEST_SEC, retry_after_sec

NOW = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        (" 12 ", 12.0),
        ("1.5", 1.5),
        ("-1", None),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("inf", None),
        ("1e3", None),
        ("1_000", None),
        ("٣", None),
        ("12, 13", None),
        ("9" * 400, LONGEST_SEC),
        ("Wed, 01 Jan 2025 00:00:30 GMT", 30.0),
        ("Wed, 01 Jan 2025 00:00:30 -0000", 30.0),
        ("Wed, 01 Jan 2025 02:00:30 +0200", 30.0),
        ("Tue, 31 Dec 2024 00:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_SEC),
        ("Wed, 01 Jan 99999 00:00:00 GMT", None),
        ("Wed, 01 Jan 2025 00:00:00 +9999999999999999999", None),
    ],
)
def test_what_a_header_asks(value: str | None, seconds: float | None) -> None:
    assert retry_after_sec(value, now=NOW) == seconds


@given(st.integers(0, int(LONGEST_SEC)))
def test_seconds_and_dates_mean_the_same(seconds: int) -> None:
    date = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    assert retry_after_sec(date, now=NOW) == retry_after_sec(str(seconds), now=NOW) == seconds


@given(st.one_of(st.text(), st.floats().map(str), st.datetimes().map(format_datetime)))
def test_no_header_asks_for_more_than_a_day_or_breaks_anything(value: str) -> None:
    seconds = retry_after_sec(value)
    assert seconds is None or 0 <= seconds <= LONGEST_SEC
