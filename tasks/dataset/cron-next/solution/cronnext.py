import re
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta

BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
PART = re.compile(r"(?:(\*)|([0-9]+)-([0-9]+))(?:/([0-9]+))?|([0-9]+)")


def values(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        match = PART.fullmatch(part)
        if match is None:
            raise ValueError(part)
        star, first, last, step, single = match.groups()
        if star:
            first, last = low, high
        elif single:
            first = last = single
        first, last, step = int(first), int(last), int(step or 1)
        if not low <= first <= last <= high or step < 1:
            raise ValueError(part)
        found |= set(range(first, last + 1, step))
    return found


def firings(expression: str, start: datetime) -> Iterator[datetime]:
    fields = expression.split()
    if len(fields) != 5:
        raise ValueError(expression)
    minutes, hours, days, months, weekdays = (
        values(field, *bounds) for field, bounds in zip(fields, BOUNDS, strict=True)
    )
    weekdays = {weekday % 7 for weekday in weekdays}
    either = fields[2] != "*" and fields[4] != "*"
    end = start.replace(
        year=start.year + 10, day=min(start.day, 28) if start.month == 2 else start.day
    )
    day = start.replace(hour=0, minute=0)
    while day <= end:
        matches = (day.day in days, day.isoweekday() % 7 in weekdays)
        if day.month in months and (any(matches) if either else all(matches)):
            for hour in sorted(hours):
                for minute in sorted(minutes):
                    moment = day.replace(hour=hour, minute=minute)
                    if start < moment <= end:
                        yield moment
        day += timedelta(days=1)


def main() -> int:
    start = datetime.strptime(sys.argv[2], "%Y-%m-%d %H:%M")
    wanted = int(sys.argv[3])
    printed = 0
    try:
        for moment in firings(sys.argv[1], start):
            if printed == wanted:
                break
            print(moment.strftime("%Y-%m-%d %H:%M"))
            printed += 1
    except ValueError:
        return 2
    return 0 if printed == wanted else 3


sys.exit(main())
