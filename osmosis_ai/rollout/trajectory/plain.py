"""JSON values that every reader of a trajectory accepts."""

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

# A number list that json.dumps(indent=2) spread over lines. Text cannot match: inside
# a JSON string a line break is escaped.
_NUMBER = r"-?\d[0-9.eE+\-]*"
_SPREAD_NUMBERS = re.compile(rf"\[\n\s*({_NUMBER}(?:,\n\s*{_NUMBER})*)\n\s*\]")
_LINE_BREAK = re.compile(r",\n\s*")


def to_json_value(value: Any) -> Any:
    """Return ``value`` in JSON's own types; never fails on a finite structure.

    Non-finite numbers become their name, bytes base64, other objects their
    ``str``; keys become text; lone surrogates become the replacement character.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return _whole_number(int(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {
            _text(key if isinstance(key, str) else str(key)): to_json_value(item)
            for key, item in value.items()
        }
    if isinstance(value, Sequence | Set):
        return [to_json_value(item) for item in value]
    return _text(str(value))


def json_text(value: Any) -> str:
    """Return JSON values as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def dump_document(document: Any, *, sort_keys: bool = False) -> str:
    """Return JSON values as a readable document, each list of numbers on one line."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2, sort_keys=sort_keys)
    return _SPREAD_NUMBERS.sub(lambda found: f"[{_LINE_BREAK.sub(', ', found[1])}]", text) + "\n"


def parse_json_object(text: str) -> dict[str, Any] | None:
    """Return the object that ``text`` holds in strict JSON, or ``None``."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and to_json_value(value) == value else None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _text(value: str) -> str:
    plain = str.__str__(value)
    try:
        plain.encode()
    except UnicodeEncodeError:
        return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return plain


def _whole_number(value: int) -> int | str:
    try:
        json.dumps(value)
    except ValueError:
        # Python refuses to print integers of several thousand digits in decimal.
        return hex(value)
    return value
