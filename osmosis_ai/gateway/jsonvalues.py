"""Reading JSON that somebody else wrote."""

from typing import Any


def objects(value: Any) -> list[dict[str, Any]]:
    """The JSON objects in ``value`` when it is a list, else none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def nonempty(value: Any) -> str | None:
    """``value`` when it is a string with something in it."""
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int:
    """``value`` when it is a whole number above zero, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def error_text(error: Any) -> str:
    """The message of an OpenAI-style ``error`` value."""
    message = error.get("message") if isinstance(error, dict) else error
    return f"the upstream reported an error: {message}"
