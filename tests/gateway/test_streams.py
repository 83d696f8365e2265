"""Cutting and joining streams, for every way they can arrive."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.gateway.chatanswer import ChatAnswer
from osmosis_ai.gateway.headers import request_headers
from osmosis_ai.gateway.sse import EventReader

line_ends = st.sampled_from(["\n", "\r\n"])
values = st.dictionaries(st.text(), st.text() | st.integers(), max_size=3)


@given(st.lists(values, max_size=6), line_ends, st.data())
def test_events_do_not_depend_on_how_the_bytes_are_cut(
    objects: list[dict[str, Any]], end: str, data: st.DataObject
) -> None:
    whole = b"".join(
        f": comment{end}data: {json.dumps(value, ensure_ascii=False)}{end}{end}".encode(
            "utf-8", errors="replace"
        )
        for value in objects
    )
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=12)))
    reader = EventReader(1_000_000)
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    events = [event for piece in pieces for event in reader.feed(piece)]
    events += reader.finish()
    assert b"".join(event.raw for event in events) == whole
    expected = [
        json.loads(json.dumps(v, ensure_ascii=False).encode(errors="replace")) for v in objects
    ]
    assert [event.parsed() for event in events] == expected


@given(st.lists(st.text(max_size=5), max_size=10), st.lists(st.text(max_size=5), max_size=10))
def test_deltas_join_to_the_whole(texts: list[str], arguments: list[str]) -> None:
    answer = ChatAnswer(100_000)
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    deltas: list[dict[str, Any]] = [{"role": "assistant"}, {"tool_calls": [call]}]
    deltas += [{"content": text} for text in texts]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": a}}]} for a in arguments]
    for delta in deltas:
        answer.add({"choices": [{"index": 0, "delta": delta}]})
    message = answer.body().parsed["choices"][0]["message"]
    assert message.get("content", "") == "".join(texts)
    function = message["tool_calls"][0]["function"]
    assert function.get("arguments", "") == "".join(arguments)
    assert function["name"] == "f"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["choices", "delta", "tool_calls", "function", "index", "usage", "error", "id"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_no_chunk_however_odd_breaks_the_record(value: Any) -> None:
    answer = ChatAnswer(200)
    if isinstance(value, dict):
        answer.add(value)
    answer.add({"choices": value, "usage": value, "model": value})
    assert len(json.dumps(answer.body().parsed)) < 3000


def test_headers_named_by_connection_do_not_cross() -> None:
    sent = [("Connection", "close, X-Hop"), ("x-hop", "1"), ("TE", "trailers"), ("X-Kept", "1")]
    assert request_headers(sent) == [("X-Kept", "1")]
