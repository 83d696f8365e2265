"""Items to chat messages and back, without the SDK."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.rollout.integrations.agents.openai_agents_items import (
    Instructions,
    lift_system,
    text_of,
    to_chat,
    to_items,
)

type Message = dict[str, Any]

IMAGE = "data:image/png;base64,aGk="
SYSTEM = {"role": "system", "content": "S."}
DEVELOPER = {"role": "developer", "content": [{"type": "input_text", "text": "D."}]}
USER = {"role": "user", "content": "U."}


def output(*parts: Message) -> Message:
    return {"type": "message", "id": "m", "role": "assistant", "content": list(parts)}


def text(value: str) -> Message:
    return {"type": "output_text", "text": value, "annotations": []}


def call(call_id: str, name: str = "f", arguments: str = "{}") -> Message:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def chat_call(call_id: str, name: str = "f", arguments: str = "{}") -> Message:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


CONVERSIONS: list[tuple[str, list[Message], list[Message]]] = [
    ("short user", [USER], [USER]),
    (
        "image",
        [{"role": "user", "content": [
            {"type": "input_text", "text": "see"},
            {"type": "input_image", "image_url": IMAGE, "detail": "low"},
        ]}],
        [{"role": "user", "content": [
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}},
        ]}],
    ),
    (
        "file",
        [{"role": "user", "content": [{"type": "input_file", "file_data": "x", "filename": "n"}]}],
        [{"role": "user", "content": [
            {"type": "file", "file": {"file_data": "x", "filename": "n"}},
        ]}],
    ),
    (
        "two texts",
        [output(text("a"), text("b"))],
        [{"role": "assistant", "content": "a\nb"}],
    ),
    (
        "refusal",
        [output({"type": "refusal", "refusal": "no"})],
        [{"role": "assistant", "content": "", "refusal": "no"}],
    ),
    (
        "words, then two calls, in one turn",
        [output(text("a")), call("1"), call("2")],
        [{"role": "assistant", "content": "a", "tool_calls": [chat_call("1"), chat_call("2")]}],
    ),
    (
        "a call, then words, in one streamed turn",
        [call("1"), output(text("a"))],
        [{"role": "assistant", "content": "a", "tool_calls": [chat_call("1")]}],
    ),
    (
        "two answers are two messages",
        [output(text("a")), output(text("b"))],
        [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}],
    ),
    (
        "reasoning joins the turn that follows",
        [
            output(text("a")),
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
            call("1"),
        ],
        [
            {"role": "assistant", "content": "a"},
            {
                "role": "assistant",
                "content": "",
                "reasoning_content": "hm",
                "tool_calls": [chat_call("1")],
            },
        ],
    ),
    (
        "reasoning text before its summary",
        [
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "short"}],
                "content": [{"type": "reasoning_text", "text": "long"}],
            },
            output(text("a")),
        ],
        [{"role": "assistant", "content": "a", "reasoning_content": "long"}],
    ),
    (
        "a tool's parts",
        [{"type": "function_call_output", "call_id": "1", "output": [
            {"type": "input_text", "text": "t"},
            {"type": "input_image", "image_url": IMAGE},
        ]}],
        [{"role": "tool", "tool_call_id": "1", "content": [
            {"type": "text", "text": "t"},
            {"type": "image_url", "image_url": {"url": IMAGE}},
        ]}],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("items", "messages"),
    [case[1:] for case in CONVERSIONS],
    ids=[case[0] for case in CONVERSIONS],
)
def test_items_to_chat(items: list[Message], messages: list[Message]) -> None:
    assert to_chat(items) == messages


@pytest.mark.parametrize("item", [{"type": "item_reference", "id": "i"}, {"type": "nonsense"}, 5])
def test_what_no_chat_message_can_say_is_refused(item: Any) -> None:
    with pytest.raises(ValueError, match="no chat message"):
        to_chat([USER, item])


@pytest.mark.parametrize(
    ("instructions", "items", "lifted", "left"),
    [
        (None, [], None, []),
        ("I.", [USER], "I.", [USER]),
        ("I.", [SYSTEM, USER], "I.\n\nS.", [USER]),
        (None, [SYSTEM, DEVELOPER, USER], "S.\n\nD.", [USER]),
        ("I.", [USER, SYSTEM], "I.", [USER, SYSTEM]),
        (None, [SYSTEM], "S.", []),
        ("", [{"role": "system", "content": ""}, USER], None, [USER]),
    ],
)
def test_lifting_system_messages(
    instructions: str | None, items: list[Message], lifted: str | None, left: list[Message]
) -> None:
    assert lift_system(instructions, items) == (lifted, left)


@pytest.mark.parametrize("position", [0, 1, 2, 9])
def test_instructions_stand_where_they_took_effect(position: int) -> None:
    said = [USER, {"role": "assistant", "content": "a"}]
    expected = list(said)
    expected.insert(position, {"role": "system", "content": "I."})
    assert to_chat([USER, output(text("a"))], [Instructions(position, "I.")]) == expected


words = st.text(min_size=1, max_size=20).filter(lambda value: value.isprintable())
arguments = st.dictionaries(words, st.integers() | words, max_size=3).map(
    lambda value: json.dumps(value, ensure_ascii=False)
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """A chat in which every turn of the assistant ends in words or in answered calls."""
    messages: list[Message] = [{"role": "system", "content": draw(words)}] * draw(st.booleans())
    numbers = iter(range(1000))
    for _ in range(draw(st.integers(0, 3))):
        messages.append({"role": "user", "content": draw(words)})
        for _ in range(draw(st.integers(0, 2))):
            ids = [f"call_{next(numbers)}" for _ in range(draw(st.integers(1, 3)))]
            made = [chat_call(i, draw(words), draw(arguments)) for i in ids]
            said = draw(st.just("") | words)
            messages.append({"role": "assistant", "content": said, "tool_calls": made})
            messages += [{"role": "tool", "tool_call_id": i, "content": draw(words)} for i in ids]
        messages.append({"role": "assistant", "content": draw(words)})
    return messages


@given(conversations())
def test_a_chat_comes_back_from_its_items(messages: list[Message]) -> None:
    before = json.dumps(messages)
    assert to_chat(to_items(messages)) == messages
    assert to_chat(messages) == messages
    assert json.dumps(messages) == before


@given(conversations(), st.none() | words)
def test_lifting_loses_no_words(messages: list[Message], instructions: str | None) -> None:
    lifted, left = lift_system(instructions, messages)
    opening = messages[: len(messages) - len(left)]
    assert messages[len(opening) :] == left
    told = [instructions or "", *(text_of(message["content"]) for message in opening)]
    assert (lifted or "") == "\n\n".join(part for part in told if part)
