"""JSON values that every reader of a trajectory accepts."""

import json
import re
from typing import Any

from osmosis_ai.rollout.types.json_safe import to_json_value

# A number list that json.dumps(indent=2) spread over lines. Text cannot match: inside
# a JSON string a line break is escaped.
_NUMBER = r"-?\d[0-9.eE+\-]*"
_SPREAD_NUMBERS = re.compile(rf"\[\n\s*({_NUMBER}(?:,\n\s*{_NUMBER})*)\n\s*\]")
_LINE_BREAK = re.compile(r",\n\s*")


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
