"""The embedded policies as the openai client sees them, over real HTTP."""

import json
import time
from typing import Any, cast

import pytest

from osmosis_ai.gateway import Gateway
from tests.gateway.clients import MULTIPLY_TOOL, PRODUCT, openai_client, post


def as_any(value: Any) -> Any:
    return cast("Any", value)


async def test_answers_the_product_and_counts_words_as_tokens(gateway: Gateway) -> None:
    async with (
        gateway.open("r1", "embedded/multiply") as endpoint,
        openai_client(endpoint) as client,
    ):
        answer = await client.chat.completions.create(model="m", messages=as_any(PRODUCT))
    choice = answer.choices[0]
    assert choice.message.content is not None
    assert choice.message.content.endswith("#### 408")
    assert choice.finish_reason == "stop"
    assert answer.model == "embedded/multiply"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 5
    assert answer.usage.completion_tokens == len(choice.message.content.split())
    assert answer.usage.total_tokens == 5 + answer.usage.completion_tokens


async def test_streams_a_role_several_pieces_a_reason_and_usage(gateway: Gateway) -> None:
    async with gateway.open("r1", "embedded/multiply") as endpoint:
        async with openai_client(endpoint) as client:
            stream = await client.chat.completions.create(
                model="m",
                messages=as_any(PRODUCT),
                stream=True,
                stream_options={"include_usage": True},
            )
            chunks = [chunk async for chunk in stream]
        [call] = endpoint.calls
    assert chunks[0].choices[0].delta.role == "assistant"
    pieces = [
        c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content
    ]
    assert len(pieces) > 3
    assert "".join(pieces).endswith("#### 408")
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == 5
    assert call.usage is not None
    assert call.usage.completion_tokens == chunks[-1].usage.completion_tokens
    assert call.latency_to_first_token_sec is not None
    assert 0 < call.latency_to_first_token_sec <= call.total_sec


async def test_no_usage_chunk_unless_asked_for(gateway: Gateway) -> None:
    async with (
        gateway.open("r1", "embedded/multiply") as endpoint,
        openai_client(endpoint) as client,
    ):
        stream = await client.chat.completions.create(
            model="m", messages=as_any(PRODUCT), stream=True
        )
        chunks = [chunk async for chunk in stream]
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)


async def test_calls_a_fitting_tool_and_then_answers(gateway: Gateway) -> None:
    async with (
        gateway.open("r1", "embedded/multiply") as endpoint,
        openai_client(endpoint) as client,
    ):
        first = await client.chat.completions.create(
            model="m", messages=as_any(PRODUCT), tools=as_any([MULTIPLY_TOOL])
        )
        assert first.choices[0].finish_reason == "tool_calls"
        assert first.choices[0].message.content is None
        [call] = first.choices[0].message.tool_calls or []
        assert call.type == "function"
        assert call.function.name == "multiply"
        assert json.loads(call.function.arguments) == {"left": 12, "right": 34}

        turn = first.choices[0].message.model_dump(exclude_none=True)
        result = {"role": "tool", "tool_call_id": call.id, "content": "408"}
        second = await client.chat.completions.create(
            model="m",
            messages=as_any([*PRODUCT, turn, result]),
            tools=as_any([MULTIPLY_TOOL]),
        )
        assert (second.choices[0].message.content or "").endswith("#### 408")


async def test_streams_a_tool_call_in_deltas(gateway: Gateway) -> None:
    async with gateway.open("r1", "embedded/multiply") as endpoint:
        async with openai_client(endpoint) as client:
            stream = await client.chat.completions.create(
                model="m", messages=as_any(PRODUCT), tools=as_any([MULTIPLY_TOOL]), stream=True
            )
            deltas = [chunk.choices[0].delta async for chunk in stream]
            whole = await client.chat.completions.create(
                model="m", messages=as_any(PRODUCT), tools=as_any([MULTIPLY_TOOL])
            )
        [streamed, _] = endpoint.calls
    parts = [part for delta in deltas for part in delta.tool_calls or []]
    functions = [part.function for part in parts if part.function]
    arguments = [function.arguments for function in functions if function.arguments]
    assert len(arguments) > 1
    [same] = whole.choices[0].message.tool_calls or []
    assert same.type == "function"
    assert (parts[0].id, functions[0].name) == (same.id, "multiply")
    assert "".join(arguments) == same.function.arguments
    assert streamed.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("name", "properties", "required"),
    [
        ("search", {"a": {"type": "integer"}, "b": {"type": "integer"}}, ["a", "b"]),
        ("calculate", {"expression": {"type": "string"}}, ["expression"]),
        (
            "calc",
            {"a": {"type": "number"}, "b": {"type": "number"}, "op": {"type": "string"}},
            ["op"],
        ),
    ],
)
async def test_leaves_a_tool_alone_that_does_not_fit(
    gateway: Gateway, name: str, properties: dict[str, Any], required: list[str]
) -> None:
    parameters = {"type": "object", "properties": properties, "required": required}
    tool = {"type": "function", "function": {"name": name, "parameters": parameters}}
    async with gateway.open("r1", "embedded/multiply") as endpoint:
        answer = await post(endpoint, {"messages": PRODUCT, "tools": [tool]})
    assert answer.json()["choices"][0]["message"]["content"].endswith("#### 408")


async def test_tool_choice_none_is_obeyed(gateway: Gateway) -> None:
    body = {"messages": PRODUCT, "tools": [MULTIPLY_TOOL], "tool_choice": "none"}
    async with gateway.open("r1", "embedded/multiply") as endpoint:
        answer = await post(endpoint, body)
    assert "tool_calls" not in answer.json()["choices"][0]["message"]


async def test_a_prompt_without_a_product_gets_no_number(gateway: Gateway) -> None:
    async with gateway.open("r1", "embedded/multiply") as endpoint:
        answer = await post(endpoint, {"messages": [{"role": "user", "content": "hello"}]})
    assert "####" not in answer.json()["choices"][0]["message"]["content"]


async def test_echo_repeats_the_text_parts_of_the_last_user_message(gateway: Gateway) -> None:
    parts = [{"type": "text", "text": "good"}, {"type": "text", "text": "day"}]
    turns = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "first"},
        {"role": "user", "content": parts},
    ]
    async with gateway.open("r1", "embedded/echo") as endpoint:
        answer = await post(endpoint, {"messages": turns})
    assert answer.json()["choices"][0]["message"]["content"] == "good\nday"


async def test_latency_comes_before_the_first_token(gateway: Gateway) -> None:
    async with gateway.open("r1", "embedded/echo?latency_ms=150") as endpoint:
        started = time.perf_counter()
        await post(endpoint, {"messages": PRODUCT, "stream": True})
        assert time.perf_counter() - started >= 0.15
        [call] = endpoint.calls
        assert call.latency_to_first_token_sec is not None
        assert call.latency_to_first_token_sec >= 0.15


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"model": "m"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ["hi"]}, "messages.0"),
        ({"messages": PRODUCT, "n": 2}, "n"),
    ],
)
async def test_a_wrong_request_is_a_400_that_names_the_field(
    gateway: Gateway, body: dict[str, Any], field: str
) -> None:
    async with gateway.open("r1", "embedded/multiply") as endpoint:
        answer = await post(endpoint, body)
        assert endpoint.summary().errors == 1
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(f"{field}:")


async def test_lists_its_one_model(gateway: Gateway) -> None:
    async with (
        gateway.open("r1", "embedded/multiply") as endpoint,
        openai_client(endpoint) as client,
    ):
        models = await client.models.list()
    assert [model.id for model in models.data] == ["embedded/multiply"]


@pytest.mark.parametrize(
    ("upstream", "complaint"),
    [
        ("embedded/divide", "echo, multiply"),
        ("embedded/multiply?wrong=1.5", "wrong='1.5'"),
        ("embedded/multiply?wrong=-0.1", "wrong='-0.1'"),
        ("embedded/multiply?wrong=nan", "wrong='nan'"),
        ("embedded/multiply?seed=x", "seed='x'"),
        ("embedded/multiply?seed=1.5", "seed='1.5'"),
        ("embedded/multiply?speed=1", "speed"),
        ("embedded/multiply?seed=1&seed=2", "twice"),
        ("embedded/echo?wrong=0.5", "wrong"),
        ("embedded/echo?latency_ms=-1", "latency_ms"),
        ("ftp://127.0.0.1/v1", "http://"),
        ("http://", "host"),
        ("", "http://"),
    ],
)
async def test_a_wrong_upstream_is_refused_at_open(
    gateway: Gateway, upstream: str, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        async with gateway.open("r1", upstream):
            pass
