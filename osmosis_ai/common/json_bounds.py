"""JSON from untrusted hands: how much a document may make of its bytes, known before it is parsed.

A document of a few mebibytes can parse into a million lists, and one of a hundred thousand
brackets exhausts a parser's stack. Both are counted first, at a small part of a parse's cost.
"""

import json
import re
from typing import Any

MAX_JSON_DEPTH = 128
MAX_JSON_ITEMS = 200_000

# A string gives back nothing of what it took, and needs no end: one pass, and no stack.
_TOKENS = re.compile(rb'[\[{\]},]|"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


class JSONBoundsError(ValueError):
    """A document is larger, nests deeper or holds more than is read; the text says which."""


def loads_bounded(
    document: bytes | str,
    *,
    max_bytes: int,
    max_items: int = MAX_JSON_ITEMS,
    max_depth: int = MAX_JSON_DEPTH,
) -> Any:
    """Parse JSON of a bounded cost.

    Args:
        document: the text, or its UTF-8.
        max_bytes: of the UTF-8.
        max_items: values in all lists and objects together.
        max_depth: lists and objects within one another.

    Raises:
        JSONBoundsError: it exceeds one of the three; nothing of it was parsed.
        ValueError: it is no JSON, or no UTF-8.
    """
    data = document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document
    check_json_bounds(data, max_bytes=max_bytes, max_items=max_items, max_depth=max_depth)
    # Of bytes the parser would guess the encoding, and in another nothing was counted.
    return json.loads(document if isinstance(document, str) else document.decode("utf-8-sig"))


def check_json_bounds(
    data: bytes,
    *,
    max_bytes: int,
    max_items: int = MAX_JSON_ITEMS,
    max_depth: int = MAX_JSON_DEPTH,
) -> None:
    """Refuse a document that ``loads_bounded`` would; parses nothing.

    ``data`` is UTF-8: a parser that guesses must be given text.

    Raises:
        JSONBoundsError: as there.
    """
    if len(data) > max_bytes:
        raise JSONBoundsError(f"holds {len(data)} bytes of JSON, and at most {max_bytes} are read")
    depth = deepest = items = strings = 0
    for token in _TOKENS.finditer(data):
        match data[token.start()]:
            case 0x5B | 0x7B:  # [ {
                items += 1
                depth += 1
                deepest = max(deepest, depth)
            case 0x5D | 0x7D:  # ] }
                depth -= 1
            case 0x2C:  # ,
                items += 1
            case _:
                strings += 1
        if deepest > max_depth:
            raise JSONBoundsError(f"nests over {max_depth} levels deep, and no deeper is read")
        if items > max_items or strings > 2 * max_items + 1:  # as many keys as values
            raise JSONBoundsError(f"holds over {max_items} values, and no more are read")
