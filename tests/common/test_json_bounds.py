"""Untrusted JSON is measured before it is parsed."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.common.json_bounds import JSONBoundsError, check_json_bounds, loads_bounded

MIB = 1024**2

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max((_depth(item) for item in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((_depth(item) for item in value), default=0)
    return 0


def _items(value: object) -> int:
    if isinstance(value, dict | list):
        inner = list(value.values()) if isinstance(value, dict) else value
        return len(inner) + sum(_items(item) for item in inner)
    return 0


@given(_VALUES, st.booleans())
def test_what_is_within_its_bounds_is_read(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)

    assert loads_bounded(text, max_bytes=MIB) == value
    assert loads_bounded(text.encode(), max_bytes=MIB) == value


@given(_VALUES)
def test_the_bounds_are_those_of_the_document(value: object) -> None:
    data = json.dumps(value).encode()
    # An empty list counts as one, so that a million of them do not pass for nothing.
    check_json_bounds(data, max_bytes=len(data), max_items=2 * _items(value) + 2)
    check_json_bounds(data, max_bytes=len(data), max_depth=_depth(value))

    if depth := _depth(value):
        with pytest.raises(JSONBoundsError, match=f"nests over {depth - 1} levels"):
            check_json_bounds(data, max_bytes=len(data), max_depth=depth - 1)
    if (items := _items(value)) > 1:
        with pytest.raises(JSONBoundsError, match="values"):
            check_json_bounds(data, max_bytes=len(data), max_items=items - 1)
    with pytest.raises(JSONBoundsError, match="bytes of JSON"):
        check_json_bounds(data, max_bytes=len(data) - 1)


@pytest.mark.parametrize(
    "document",
    [
        b"[" * MIB,
        b"[" * 1000 + b"]" * 1000,
        b"[" + b"[]," * MIB + b"[]]",
        b"[" + b"0," * MIB + b"0]",
        b'{"a":' * 1000 + b"1" + b"}" * 1000,
        b'["' + b"x" * 32 * MIB,
        b'["' + b'\\"' * 4 * MIB,
        b"[" + b'"a",' * MIB,
    ],
    ids=[
        "open brackets",
        "deep",
        "many lists",
        "many numbers",
        "deep objects",
        "open string",
        "open string of quotes",
        "many strings",
    ],
)
def test_a_hostile_document_costs_no_more_than_a_few_times_its_size(document: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"over|Expecting|Unterminated"):
            loads_bounded(document, max_bytes=64 * MIB)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 3 * len(document) + MIB


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16", "utf-32-be"])
def test_no_other_encoding_is_guessed(encoding: str) -> None:
    document = "[\u2201" + "[]," * 300_000 + "[]]"
    with pytest.raises(ValueError, match=r"over|decode|Expecting"):
        loads_bounded(document.encode(encoding), max_bytes=64 * MIB)


def test_brackets_within_strings_are_text() -> None:
    text = json.dumps(["[" * 1000 + '\\"' + "," * 300_000])

    assert loads_bounded(text, max_bytes=MIB) == json.loads(text)
