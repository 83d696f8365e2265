"""Messages that do not travel easily."""

import math
from typing import Any

from tests.conformance.model import DONE, Case, ok, said, sample


def _nested(depth: int, end: Any) -> Any:
    for _ in range(depth):
        end = {"in": end}
    return end


def _case(name: str, workflow: str, content: Any) -> Case:
    return Case(
        f"messages-{name}",
        f"content:{workflow}",
        ok(said(content)),
        "graders:One",
        ok(said(content, reward=1.0)),
    )


_TEXT = {
    "role": "assistant",
    "content": "nul \x00, lone \udcff, emoji \U0001f600, line\u2028end, \x1b[31mred",
    "$osmosis:bytes": "not bytes",
}
# The list of messages and the message are the first two of a hundred levels.
_TOO_DEEP = _nested(98, "<dict nested deeper than 100 levels>")
_MANY = [{"role": "assistant", "content": str(turn)} for turn in range(2000)]
_RESERVED = {"$osmosis:dict": [["a", 1]], "__class__": "x", "$ref": "#/y"}
_CIRCLE = ["<circular list>", "<circular list>"]

CASES = [
    _case("bytes", "BytesInMessages", [{"image": b"\x89PNG\xff\x00"}, b"x"]),
    _case("deeply-nested", "DeepNesting", _nested(60, {"end": True})),
    _case("circular", "Circular", [{"name": "outer", "parent": "<circular _Call>"}, _CIRCLE]),
    _case(
        "odd-keys",
        "OddKeys",
        {"2": "int", "0.5": "float", "None": "none", "True": "bool", "(1, 2)": "tuple"},
    ),
    _case(
        "objects",
        "Objects",
        [
            "red",
            {"name": "lookup", "parent": None},
            {"tokens": 3, "tags": ["a"]},
            ["a", 1],
            ["one"],
            "2026-01-02T03:04:05+00:00",
            "2026-01-02",
            "some/file",
            "<conformance_rollout.content._Plain object>",
        ],
    ),
    _case("odd-numbers", "OddNumbers", [math.nan, math.inf, -0.0, 10**40, 1e-320, 1, 1.0, True]),
    _case("big", "Big", "0123456789abcdef" * (5 * 65536)),
    Case(
        "messages-odd-text",
        "content:OddText",
        ok(sample([_TEXT])),
        "graders:One",
        ok(sample([_TEXT], reward=1.0)),
    ),
    Case(
        "messages-too-deeply-nested",
        "content:TooDeepNesting",
        ok(said(_TOO_DEEP)),
        "graders:One",
        ok(said(_TOO_DEEP, reward=1.0)),
    ),
    Case(
        "messages-many",
        "content:Many",
        ok(sample(_MANY)),
        "graders:One",
        ok(sample(_MANY, reward=1.0)),
    ),
    Case(
        "messages-reserved-names",
        "content:ReservedNames",
        ok(sample([DONE, {"content": _RESERVED}], extra_fields=_RESERVED)),
        "graders:One",
        ok(sample([DONE, {"content": _RESERVED}], extra_fields=_RESERVED, reward=1.0)),
    ),
]
