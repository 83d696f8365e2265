"""Turning user telemetry into what JSON can hold, saying what was dropped."""

import math
import numbers
from collections.abc import Mapping
from typing import Any

_DROP = object()
_MAX_DEPTH = 100


def drop_unencodable(value: Mapping[str, Any], dropped: set[str]) -> dict[str, Any]:
    """Return a JSON-encodable copy of a mapping; kinds that went are added to ``dropped``.

    NumPy-like numbers become ``int`` and ``float``, tuples become lists, number
    keys become text; non-finite numbers, other keys, other objects and what is
    nested deeper than 100 levels go.
    """
    result = _encode(value, dropped, ())
    return result if isinstance(result, dict) else {}


def is_encoded(value: object) -> bool:
    """Whether ``value`` holds JSON's own types only, to any depth of at most 100 levels."""
    return _is_encoded(value, 0)


def _is_encoded(value: object, depth: int) -> bool:
    if value is None or type(value) in {bool, str, int}:
        return True
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
        return int(value)
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
