"""What JSON can hold of any value: telemetry loses the rest, messages have it as text."""

import base64
import math
import numbers
from collections.abc import Mapping, Sequence, Set
from typing import Any

from osmosis_ai.common.texts import clean_text

_DROP = object()
_MAX_DEPTH = 100
_MAX_JSON_DEPTH = 200
_MAX_BITS = 14_000
"""Of a whole number: Python writes and reads 4,300 digits."""


def drop_unencodable(value: Mapping[str, Any], dropped: set[str]) -> dict[str, Any]:
    """Return a JSON-encodable copy of a mapping; kinds that went are added to ``dropped``.

    NumPy-like numbers become ``int`` and ``float``, tuples become lists, number
    keys become text; non-finite numbers, other keys, other objects and what is
    nested deeper than 100 levels go.
    """
    result = _encode(value, dropped, ())
    return result if isinstance(result, dict) else {}


def is_written(value: int) -> bool:
    """Whether JSON's readers and writers in Python take a whole number."""
    return value.bit_length() <= _MAX_BITS


def to_json_value(value: Any) -> Any:
    """Return ``value`` in JSON's own types; never fails, and leaves nothing out.

    Non-finite numbers become their name, bytes base64, whole numbers of thousands
    of digits hexadecimal, other objects their ``str``; keys become text; lone
    surrogates become the replacement character. What holds itself, or nests
    deeper than 200 levels, ends in a text that says so.
    """
    return _json(value, ())


def _json(value: Any, parents: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(str.__str__(value))
    if isinstance(value, int):
        return int(value) if is_written(value) else hex(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if not isinstance(value, Mapping | Sequence | Set):
        return _shown(value)
    if id(value) in parents:
        return f"<circular {type(value).__name__}>"
    if len(parents) >= _MAX_JSON_DEPTH:
        return f"<{type(value).__name__} nested deeper than {_MAX_JSON_DEPTH} levels>"
    inner = (*parents, id(value))
    if isinstance(value, Mapping):
        return {
            clean_text(str.__str__(key)) if isinstance(key, str) else _shown(key): _json(
                item, inner
            )
            for key, item in value.items()
        }
    return [_json(item, inner) for item in value]


def _shown(value: object) -> str:
    try:
        return clean_text(str(value))
    except Exception as exc:  # of an object that nobody knows
        return f"<{type(value).__name__} without a text: {type(exc).__name__}>"


def is_encoded(value: object) -> bool:
    """Whether ``value`` holds JSON's own types only, to any depth of at most 100 levels."""
    return _is_encoded(value, 0)


def _is_encoded(value: object, depth: int) -> bool:
    if value is None or type(value) in {bool, str}:
        return True
    if type(value) is int:
        return is_written(value)
    if type(value) is float:
        return math.isfinite(value)
    if depth > _MAX_DEPTH:
        return False
    if type(value) is list:
        return all(_is_encoded(item, depth + 1) for item in value)
    if type(value) is dict:
        return all(type(key) is str and _is_encoded(item, depth + 1) for key, item in value.items())
    return False


def _encode(value: Any, dropped: set[str], parents: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        if is_written(int(value)):
            return int(value)
        dropped.add("number of thousands of digits")
        return _DROP
    if isinstance(value, numbers.Real):
        number = _finite(value)
        if number is not None:
            return number
        dropped.add("non-finite number")
        return _DROP
    if isinstance(value, Mapping | list | tuple):
        if id(value) in parents:
            dropped.add("circular reference")
            return _DROP
        if len(parents) > _MAX_DEPTH:
            dropped.add(f"nesting deeper than {_MAX_DEPTH}")
            return _DROP
        return _encode_container(value, dropped, (*parents, id(value)))
    dropped.add(type(value).__name__)
    return _DROP


def _encode_container(
    value: Mapping[Any, Any] | list[Any] | tuple[Any, ...],
    dropped: set[str],
    parents: tuple[int, ...],
) -> Any:
    if not isinstance(value, Mapping):
        items = [_encode(item, dropped, parents) for item in value]
        return [item for item in items if item is not _DROP]
    result: dict[str, Any] = {}
    for key, item in value.items():
        text = _encode_key(key)
        if text is None:
            dropped.add(f"{type(key).__name__} key")
            continue
        encoded = _encode(item, dropped, parents)
        if encoded is not _DROP:
            result[text] = encoded
    return result


def _encode_key(key: Any) -> str | None:
    if isinstance(key, str):
        return key
    if isinstance(key, bool) or not isinstance(key, numbers.Real):
        return None
    return str(int(key)) if isinstance(key, numbers.Integral) else str(float(key))


def _finite(value: numbers.Real) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
