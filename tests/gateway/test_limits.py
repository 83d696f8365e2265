"""What a rollout may ask for."""

from typing import Any

import anyio
import httpx
import pytest

from osmosis_ai.gateway import Gateway, GatewayLimits
from tests.gateway.clients import PRODUCT, chat, openai_client, post
from tests.gateway.model_server import KEY, ModelServer

BODY = {"messages": PRODUCT}


async def test_a_body_may_be_as_large_as_the_limit_and_no_larger(gateway: Gateway) -> None:
    limits = GatewayLimits(max_request_bytes=200)
    head, tail = b'{"messages": [{"role": "user", "content": "', b'"}]}'
    fits = head + b"a" * (200 - len(head) - len(tail)) + tail
    async with gateway.open("r1", "embedded/echo", limits=limits) as endpoint:
        assert (await post(endpoint, content=fits)).status_code == 200
        answer = await post(endpoint, content=fits + b" ")
        assert answer.status_code == 413
        assert "max_request_bytes" in (endpoint.summary().last_error or "")


async def test_a_body_of_unknown_length_is_bounded_too(gateway: Gateway) -> None:
    async def chunks() -> Any:
        for _ in range(50):
            yield b" " * 100

    limits = GatewayLimits(max_request_bytes=200)
    async with gateway.open("r1", "embedded/echo", limits=limits) as endpoint:
        answer = await post(endpoint, content=chunks())
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1]", b'"text"', b"null", b"\xff\xfe\x00", b'{"a": NaN}', b"[" * 100_000],
)
async def test_a_body_that_is_no_json_object_is_a_400(gateway: Gateway, content: bytes) -> None:
    async with gateway.open("r1", "embedded/echo") as endpoint:
        answer = await post(endpoint, content=content)
        assert endpoint.summary().errors == 1
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "bad_json"


async def test_calls_are_counted(gateway: Gateway) -> None:
    async with gateway.open("r1", "embedded/echo", limits=GatewayLimits(max_calls=2)) as endpoint:
        statuses = [(await post(endpoint, BODY)).status_code for _ in range(4)]
        summary = endpoint.summary()
    assert statuses == [200, 200, 429, 429]
    assert (summary.calls, summary.refused, summary.errors) == (2, 2, 2)
    assert "max_calls=2" in (summary.first_error or "")


async def test_tokens_are_counted(gateway: Gateway) -> None:
    # Five words asked and echoed: ten tokens a call.
    limits = GatewayLimits(max_tokens=15)
    async with gateway.open("r1", "embedded/echo", limits=limits) as endpoint:
        answers = [await post(endpoint, BODY) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert "max_tokens=15 (20 tokens used)" in answers[2].json()["error"]["message"]
    assert answers[2].headers["x-should-retry"] == "false"


async def test_streaming_without_usage_does_not_evade_the_token_limit(
    gateway: Gateway, model: ModelServer
) -> None:
    model.go_on.set()
    limits = GatewayLimits(max_tokens=10)
    async with gateway.open("r1", model.url, KEY, limits) as endpoint:
        async with openai_client(endpoint) as client:
            stream = await client.chat.completions.create(
                model="slow-stream", messages=[{"role": "user", "content": "hi"}], stream=True
            )
            chunks = [chunk async for chunk in stream]
        assert all(chunk.choices for chunk in chunks)
        assert endpoint.summary().prompt_tokens == 11
        assert (await post(endpoint, chat("slow-stream", stream=True))).status_code == 429


async def test_calls_at_once_are_bounded_and_the_place_is_given_back(
    gateway: Gateway, model: ModelServer
) -> None:
    statuses: list[int] = []
    limits = GatewayLimits(max_concurrent=1)
    async with gateway.open("r1", model.url, KEY, limits) as endpoint:

        async def ask() -> None:
            statuses.append((await post(endpoint, chat("hangs"))).status_code)

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await model.arrived.wait()
            refused = await post(endpoint, chat("plain"))
            model.go_on.set()
        assert statuses == [200]
        assert refused.status_code == 429
        assert refused.headers["x-should-retry"] == "true"
        assert (await post(endpoint, chat("plain"))).status_code == 200


async def test_a_place_is_free_as_soon_as_the_client_saw_the_end(gateway: Gateway) -> None:
    limits = GatewayLimits(max_concurrent=1)
    async with gateway.open("r1", "embedded/echo", limits=limits) as endpoint:
        async with openai_client(endpoint) as client:
            for _ in range(20):
                stream = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "hi"}], stream=True
                )
                assert [chunk async for chunk in stream]
        assert (endpoint.summary().calls, endpoint.summary().errors) == (20, 0)


async def test_a_stream_counts_as_over_at_its_end_mark(
    gateway: Gateway, model: ModelServer
) -> None:
    limits = GatewayLimits(max_concurrent=1)
    async with (
        gateway.open("r1", model.url, KEY, limits) as endpoint,
        httpx.AsyncClient(trust_env=False) as client,
        client.stream(
            "POST",
            f"{endpoint.url}/chat/completions",
            json=chat("lingers", stream=True),
            headers={"Authorization": f"Bearer {endpoint.token}"},
        ) as answer,
    ):
        async for line in answer.aiter_lines():
            if line == "data: [DONE]":
                break
        # The upstream holds its connection open, and so does the client.
        [call] = endpoint.calls
        assert (call.status, call.error) == (200, None)
        assert (await post(endpoint, chat("plain"))).status_code == 200
    assert endpoint.summary().errors == 0


async def test_an_answer_may_not_be_larger_than_the_limit(
    gateway: Gateway, model: ModelServer
) -> None:
    limits = GatewayLimits(max_response_bytes=50)
    async with gateway.open("r1", model.url, KEY, limits) as endpoint:
        whole = await post(endpoint, chat("plain"))
        streamed = await post(endpoint, chat("slow-stream", stream=True))
    assert whole.status_code == 502
    assert whole.json()["error"]["code"] == "upstream_too_large"
    assert "event: error" in streamed.text
    assert "max_response_bytes" in streamed.text


async def test_memory_for_calls_is_bounded_but_the_totals_are_not(gateway: Gateway) -> None:
    limits = GatewayLimits(max_calls_in_memory=3)
    async with gateway.open("r1", "embedded/echo", limits=limits) as endpoint:
        for _ in range(5):
            await post(endpoint, BODY)
        assert len(endpoint.calls) == 3
        assert endpoint.summary().calls == 5
        assert endpoint.summary().prompt_tokens == 25


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_request_bytes", 0), ("max_calls", -1), ("max_concurrent", 0), ("upstream_attempts", 0)],
)
def test_a_limit_that_makes_no_sense_is_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*, got {value}"):
        GatewayLimits(**{name: value})
