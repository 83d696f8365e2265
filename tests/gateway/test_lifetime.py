"""Endpoints end with their rollout, and calls with whoever made them."""

import time
from pathlib import Path

import anyio
import httpx
import pytest

from osmosis_ai.gateway import Gateway
from tests.gateway.clients import PRODUCT, chat, openai_client, post
from tests.gateway.model_server import KEY, ModelServer


async def test_closing_ends_a_call_in_flight(gateway: Gateway, model: ModelServer) -> None:
    answers: list[httpx.Response] = []
    async with anyio.create_task_group() as group:
        async with gateway.open("r1", model.url, KEY) as endpoint:

            async def ask() -> None:
                answers.append(await post(endpoint, chat("hangs")))

            group.start_soon(ask)
            await model.arrived.wait()
            started = time.perf_counter()
        assert time.perf_counter() - started < 2
        [call] = endpoint.calls
        assert call.status == 410
        with anyio.fail_after(5):
            await model.abandoned.wait()
    assert answers[0].status_code == 410
    assert "closed" in answers[0].json()["error"]["message"]


async def test_closing_ends_a_stream_with_an_error_event(
    gateway: Gateway, model: ModelServer
) -> None:
    texts: list[str] = []
    async with anyio.create_task_group() as group, gateway.open("r1", model.url, KEY) as endpoint:
        begun = anyio.Event()

        async def ask() -> None:
            async with (
                httpx.AsyncClient(trust_env=False) as client,
                client.stream(
                    "POST",
                    f"{endpoint.url}/chat/completions",
                    json=chat("slow-stream", stream=True),
                    headers={"Authorization": f"Bearer {endpoint.token}"},
                ) as answer,
            ):
                async for line in answer.aiter_lines():
                    texts.append(line)
                    begun.set()

        group.start_soon(ask)
        await begun.wait()
    assert "event: error" in texts
    assert "is closed" in texts[texts.index("event: error") + 1]


async def test_closing_the_gateway_closes_its_endpoints(model: ModelServer) -> None:
    async with anyio.create_task_group() as group:
        async with Gateway() as gateway:
            opened = anyio.Event()
            closing = anyio.Event()

            async def rollout() -> None:
                async with gateway.open("r1", model.url, KEY) as endpoint:
                    opened.set()
                    answer = await post(endpoint, chat("hangs"))
                    assert answer.status_code == 410
                    closing.set()

            group.start_soon(rollout)
            await opened.wait()
            await model.arrived.wait()
        with anyio.fail_after(5):
            await closing.wait()


async def test_an_agent_that_leaves_cancels_the_call_upstream(
    gateway: Gateway, model: ModelServer
) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        with anyio.move_on_after(0.3):
            await post(endpoint, chat("hangs"))
        with anyio.fail_after(5):
            await model.abandoned.wait()
    [call] = endpoint.calls
    assert call.status == 499
    assert "disconnected" in (call.error or "")


async def test_an_agent_that_leaves_mid_stream_cancels_the_call_upstream(
    gateway: Gateway, model: ModelServer
) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        async with openai_client(endpoint) as client:
            stream = await client.chat.completions.create(
                model="slow-stream", messages=[{"role": "user", "content": "hi"}], stream=True
            )
            await anext(aiter(stream))
            await stream.close()
        with anyio.fail_after(5):
            await model.abandoned.wait()
    [call] = endpoint.calls
    assert call.status == 499


async def test_an_agent_that_stops_reading_cannot_hold_the_endpoint_open(
    gateway: Gateway, model: ModelServer
) -> None:
    text = "word " * 2_000_000
    body = {"messages": [{"role": "user", "content": text}], "stream": True}
    async with (
        gateway.open("r1", "embedded/echo") as endpoint,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        request = client.build_request(
            "POST",
            f"{endpoint.url}/chat/completions",
            json=body,
            headers={"Authorization": f"Bearer {endpoint.token}"},
            timeout=30,
        )
        answer = await client.send(request, stream=True)
        started = time.perf_counter()
        await endpoint.close()
        assert time.perf_counter() - started < 4
        assert endpoint.summary().errors == 1
        await answer.aclose()


async def test_rollouts_in_parallel_do_not_mix(gateway: Gateway, tmp_path: Path) -> None:
    results: dict[str, tuple[int, int]] = {}

    async def rollout(name: str, factor: int) -> None:
        async with gateway.open(name, f"embedded/multiply?latency_ms={factor % 7}") as endpoint:
            for n in range(5):
                body = {"messages": [{"role": "user", "content": f"{n} x {factor}"}]}
                answer = await post(endpoint, body)
                content = answer.json()["choices"][0]["message"]["content"]
                assert content.endswith(f"#### {n * factor}")
        results[name] = (endpoint.summary().calls, endpoint.summary().errors)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(rollout, f"r{number}", 100 + number)
    assert results == {f"r{number}": (5, 0) for number in range(8)}


async def test_a_cancelled_rollout_closes_its_endpoint(gateway: Gateway) -> None:
    with anyio.CancelScope() as scope:
        async with gateway.open("r1", "embedded/echo") as endpoint:
            scope.cancel()
            await anyio.sleep(1)
    assert gateway.find(endpoint.url) is None
    assert (await post(endpoint, {"messages": PRODUCT})).status_code == 410


async def test_a_taken_port_fails_cleanly(gateway: Gateway) -> None:
    with pytest.raises(OSError, match=str(gateway.port)):
        async with Gateway(port=gateway.port):
            pass
