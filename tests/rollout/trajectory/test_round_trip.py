"""Chat to ATIF to chat, for any conversation."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from osmosis_ai.rollout.container.trajectories import messages_from_trajectory
from tests.rollout.trajectory.documents import call, document

Messages = list[dict[str, Any]]

# Hypothesis draws no lone surrogates here: JSON text in UTF-8 cannot carry them.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
arguments = texts | st.dictionaries(texts, json_values, max_size=3).map(json.dumps)
image_parts = st.sampled_from(
    [
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": {"url": "shots/b.jpeg", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGOD"}},
    ]
)
text_parts = st.builds(lambda text: {"type": "text", "text": text}, texts)
contents = texts | st.lists(text_parts | image_parts, min_size=1, max_size=3).filter(
    lambda parts: any(part["type"] != "text" for part in parts)
)
plain_messages = st.builds(
    lambda role, content, fields: {"role": role, "content": content, **fields},
    st.sampled_from(["system", "developer", "user", "critic"]),
    contents,
    st.fixed_dictionaries({}, optional={"name": texts, "refusal": json_values}),
)


@st.composite
def turns(draw: st.DrawFn) -> Messages:
    """An assistant's message and the results of its calls, some unanswered."""
    message: dict[str, Any] = {"role": "assistant", "content": draw(contents)}
    message |= draw(st.fixed_dictionaries({}, optional={"reasoning_content": texts}))
    ids = draw(st.lists(st.sampled_from(["call_0", "call_1", "c"]), unique=True, max_size=3))
    if ids:
        message["tool_calls"] = [call(id_, "f", draw(arguments)) for id_ in ids]
    answered = [id_ for id_ in ids if draw(st.booleans())]
    return [
        message,
        *(
            {"role": "tool", "tool_call_id": id_, "content": draw(contents)}
            for id_ in draw(st.permutations(answered))
        ),
    ]


conversations = st.lists(turns() | plain_messages.map(lambda one: [one]), max_size=5).map(
    lambda parts: [message for part in parts for message in part]
)


@settings(deadline=None)
@given(conversations)
def test_a_conversation_survives_unchanged(messages: Messages) -> None:
    built = document(messages)
    assert messages_from_trajectory(json.loads(json.dumps(built))) == messages


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.binary(max_size=4)
    | st.text(max_size=6)
    | st.sampled_from(["tool", "function", "assistant", "call_0", "text", "image_url"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "id", "function", "name", "arguments", "url", "usage"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
keys = [
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "reasoning_content",
    "usage",
    "model",
    "created_at",
    "extra",
    "name",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(keys), anything, max_size=6), max_size=5))
def test_whatever_a_workflow_calls_messages_makes_a_valid_document(messages: Messages) -> None:
    built = document(messages)
    once = messages_from_trajectory(built)
    assert messages_from_trajectory(document(once)) == once
    json.dumps(built, allow_nan=False).encode()
