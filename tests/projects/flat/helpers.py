"""A second top-level module."""


def last_number(text: str) -> int:
    return int("".join(c if c.isdigit() else " " for c in text).split()[-1])
