"""What a Responses request becomes as a chat-completions request."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.gateway.errors import ApiError
from osmosis_ai.gateway.responses.request import to_chat

USER = {"role": "user", "content": "hi"}
CALL = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "3"}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}


def said(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "id": "m", "content": [part]}


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        ("hi", [USER]),
        ([USER], [USER]),
        ([{"role": "developer", "content": "be"}], [{"role": "system", "content": "be"}]),
        (
            [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}],
            [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
        ),
        (
            [{"role": "user", "content": [{"type": "input_image", "image_url": "data:x"}]}],
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]}],
        ),
        (
            [USER, {"type": "reasoning", "id": "r", "summary": []}, said("ok"), CALL, RESULT],
            [
                USER,
                {"role": "assistant", "content": "ok", "tool_calls": [CHAT_CALL]},
                {"role": "tool", "tool_call_id": "c1", "content": "3"},
            ],
        ),
        (
            [CALL, CALL | {"call_id": "c2"}, RESULT],
            [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [CHAT_CALL, CHAT_CALL | {"id": "c2"}],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "3"},
            ],
        ),
        (
            [said("one"), said("two")],
            [
                {"role": "assistant", "content": "one"},
                {"role": "assistant", "content": "two"},
            ],
        ),
        (
            [CALL, said("after")],
            [{"role": "assistant", "content": "after", "tool_calls": [CHAT_CALL]}],
        ),
    ],
)
def test_input_becomes_messages(given: Any, messages: list[dict[str, Any]]) -> None:
    assert to_chat({"model": "m", "input": given})["messages"] == messages


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_output_tokens": 5}, {"max_completion_tokens": 5}),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
        ({"text": {"verbosity": "low"}}, {"verbosity": "low"}),
        ({"text": {"format": {"type": "text"}}}, {}),
        (
            {"text": {"format": {"type": "json_object"}}},
            {"response_format": {"type": "json_object"}},
        ),
        ({"include": ["reasoning.encrypted_content"], "store": False}, {}),
        ({"include": ["message.output_text.logprobs"]}, {"logprobs": True}),
        ({"temperature": 0.5, "top_k": 3, "seed": 1}, {"temperature": 0.5, "top_k": 3, "seed": 1}),
        ({"tool_choice": "auto", "tools": []}, {}),
        (
            {
                "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": None}],
                "tool_choice": {"type": "function", "name": "f"},
                "parallel_tool_calls": False,
            },
            {
                "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
                "tool_choice": {"type": "function", "function": {"name": "f"}},
                "parallel_tool_calls": False,
            },
        ),
        ({"stream": True, "stream_options": {"include_obfuscation": False}}, {"stream": True}),
    ],
)
def test_fields_become_their_chat_names(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    chat = to_chat({"model": "m", "input": "hi", **fields})
    assert chat == {"model": "m", "messages": [USER], **expected}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id: 'resp_1'"),
        ({"conversation": "c"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation: 'auto'"),
        ({"tools": [{"type": "file_search"}]}, "tools.0: 'file_search'"),
        ({"tools": [{"type": "function", "name": "f"}, {"type": "mcp"}]}, "tools.1: 'mcp'"),
        ({"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "mcp"}}, "mcp"),
        ({"include": ["file_search_call.results"]}, "file_search_call.results"),
        ({"include": [{"odd": 1}]}, "include"),
        ({"truncation": {"odd": 1}}, "truncation"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format"),
        ({"input": [USER, {"type": "item_reference", "id": "x"}]}, "input.1: 'item_reference'"),
        ({"input": [{"type": "web_search_call"}]}, "input.0: 'web_search_call'"),
        ({"input": [{"role": "user", "content": [{"type": "odd"}]}]}, "input.0.content.0: 'odd'"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
            "input.0.content.0: an image needs an image_url",
        ),
        (
            {"input": [RESULT | {"output": [{"type": "input_image", "image_url": "x"}]}]},
            "input.0.output.0: 'input_image'",
        ),
        ({"input": [{"role": "robot", "content": "x"}]}, "input.0.role"),
        ({"input": ["text"]}, "input.0"),
        ({"input": None}, "input: must be"),
        ({"input": [CALL | {"arguments": {}}]}, "input.0.arguments"),
        ({"instructions": ["x"]}, "instructions"),
    ],
)
def test_what_cannot_be_said_is_named(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ApiError) as refused:
        to_chat({"model": "m", "input": "hi", **fields})
    assert refused.value.status == 400
    assert named in refused.value.message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
odd_items = st.dictionaries(
    st.sampled_from(["type", "role", "content", "call_id", "name", "arguments", "output"]),
    json_values
    | st.sampled_from(["message", "function_call", "function_call_output", "assistant", "user"]),
)
odd_requests = st.fixed_dictionaries(
    {"input": json_values | st.lists(odd_items, max_size=3)},
    optional=dict.fromkeys(
        ("instructions", "tools", "tool_choice", "text", "reasoning", "include", "store"),
        json_values,
    ),
)


@given(odd_requests)
def test_no_request_however_odd_breaks_the_gateway(request: dict[str, Any]) -> None:
    try:
        chat = to_chat(request)
    except ApiError as refused:
        assert refused.status == 400  # noqa: PT017
    else:
        assert isinstance(chat["messages"], list)


turns = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "call"]), st.text(min_size=1, max_size=9)),
    max_size=12,
)


@given(turns)
def test_every_text_and_call_survives_in_order(conversation: list[tuple[str, str]]) -> None:
    items: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(conversation):
        if kind == "call":
            items.append(CALL | {"call_id": f"c{number}", "arguments": text})
            items.append({"type": "function_call_output", "call_id": f"c{number}", "output": text})
        else:
            items.append(said(text) if kind == "assistant" else {"role": "user", "content": text})
    messages = to_chat({"input": items})["messages"]
    spoken: list[tuple[str, str]] = []
    for message in messages:
        if message["role"] == "tool":
            assert spoken[-1] == ("call", message["content"])
            continue
        if message["content"] is not None:
            spoken.append((message["role"], message["content"]))
        spoken += [
            ("call", call["function"]["arguments"]) for call in message.get("tool_calls", [])
        ]
    assert spoken == conversation
