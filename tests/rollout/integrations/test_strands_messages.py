"""Strands blocks and chat messages, in both directions."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osmosis_ai.rollout.integrations.agents.strands_messages import to_chat, to_strands


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        ),
        (
            {"image": {"format": "png", "source": {"location": {"uri": "s3://b/k.png"}}}},
            {"type": "image_url", "image_url": {"url": "s3://b/k.png"}},
        ),
        (
            {"document": {"format": "pdf", "name": "d", "source": {"bytes": b"%PDF"}}},
            {
                "type": "file",
                "file": {"filename": "d", "file_data": "data:application/pdf;base64,JVBERg=="},
            },
        ),
        (
            {"reasoningContent": {"redactedContent": b"xx"}},
            {"type": "reasoningContent", "reasoningContent": {"redactedContent": "eHg="}},
        ),
        (
            {"guardContent": {"text": {"text": "t"}}},
            {"type": "guardContent", "guardContent": {"text": {"text": "t"}}},
        ),
    ],
)
def test_blocks_to_parts(block: dict[str, Any], part: dict[str, Any]) -> None:
    (message,) = to_chat([{"role": "user", "content": [{"text": "see"}, block]}])
    assert message == {"role": "user", "content": [{"type": "text", "text": "see"}, part]}


def test_one_assistant_turn() -> None:
    content = [
        {"reasoningContent": {"reasoningText": {"text": "think", "signature": "s"}}},
        {"text": "calling"},
        {"cachePoint": {"type": "default"}},
        {"toolUse": {"toolUseId": "c", "name": "f", "input": {"ä": None}}},
    ]
    assert to_chat(
        [{"role": "assistant", "content": content}], [{"text": "be"}, {"text": "kind"}]
    ) == [
        {"role": "system", "content": "be\nkind"},
        {
            "role": "assistant",
            "content": "calling",
            "reasoning_content": "think",
            "tool_calls": [
                {
                    "id": "c",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"ä": null}'},
                }
            ],
        },
    ]


def test_tool_results_come_before_the_text_beside_them() -> None:
    content = [
        {"text": "also"},
        {"toolResult": {"toolUseId": "a", "status": "success", "content": [{"json": {"n": 1}}]}},
        {"toolResult": {"toolUseId": "b", "status": "error", "content": [{"text": "boom"}]}},
    ]
    assert to_chat([{"role": "user", "content": content}]) == [
        {"role": "tool", "tool_call_id": "a", "content": '{"n": 1}'},
        {"role": "tool", "tool_call_id": "b", "status": "error", "content": "boom"},
        {"role": "user", "content": "also"},
    ]


def test_usage_that_strands_filled_with_zeros_is_not_usage() -> None:
    zero = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
    message = {"role": "assistant", "content": [{"text": "x"}], "metadata": {"usage": zero}}
    assert to_chat([message]) == [{"role": "assistant", "content": "x"}]


def test_parallel_tool_messages_become_one_strands_message() -> None:
    tools = [{"role": "tool", "tool_call_id": id_, "content": id_} for id_ in "ab"]
    (message,) = to_strands(tools).messages
    assert [block["toolResult"]["toolUseId"] for block in message["content"]] == ["a", "b"]
    assert to_chat([message]) == tools


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
values = st.none() | st.booleans() | st.integers() | texts
parts = st.builds(lambda text: {"type": "text", "text": text}, texts) | st.sampled_from(
    [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
)
contents = texts | st.lists(parts, min_size=2, max_size=3)


@st.composite
def turns(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A user's message, an agent's, and the results of its calls."""
    ids = draw(st.lists(texts, unique=True, max_size=3))
    agent: dict[str, Any] = {"role": "assistant", "content": draw(contents)}
    if ids:
        agent["tool_calls"] = [
            {
                "id": id_,
                "type": "function",
                "function": {
                    "name": "f",
                    "arguments": json.dumps(
                        draw(st.dictionaries(texts, values, max_size=2)), ensure_ascii=False
                    ),
                },
            }
            for id_ in ids
        ]
    results = [{"role": "tool", "tool_call_id": id_, "content": draw(texts)} for id_ in ids]
    return [{"role": "user", "content": draw(contents)}, agent, *results]


@settings(deadline=None)
@given(st.lists(turns(), max_size=3))
def test_chat_to_strands_to_chat(conversation: list[list[dict[str, Any]]]) -> None:
    messages = [message for turn in conversation for message in turn]
    assert to_chat(to_strands(messages).messages) == messages
