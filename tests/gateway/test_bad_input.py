"""The table of bad inputs in docs/model-path.md, row by row."""

import socket
import time

import anyio
import httpx
import openai
import pytest

from osmosis_ai.gateway import Gateway, GatewayLimits
from tests.gateway.clients import chat, openai_client, post
from tests.gateway.model_server import KEY, ModelServer


async def test_malformed_json_is_a_400_and_reaches_no_upstream(
    gateway: Gateway, model: ModelServer
) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        for resource in ("chat/completions", "responses"):
            async with httpx.AsyncClient(trust_env=False) as client:
                answer = await client.post(
                    f"{endpoint.url}/{resource}",
                    content=b'{"model": ',
                    headers={"Authorization": f"Bearer {endpoint.token}"},
                )
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_json")
        assert endpoint.summary().errors == 2
    assert model.bodies == []


async def test_a_body_over_the_limit_is_a_413_and_an_event(
    gateway: Gateway, model: ModelServer
) -> None:
    limits = GatewayLimits(max_request_bytes=100)
    async with gateway.open("r1", model.url, KEY, limits) as endpoint:
        answer = await post(endpoint, chat("plain", padding="x" * 200))
        [event] = endpoint.summary().limit_events
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
    assert (event.limit, event.value) == ("max_request_bytes", 100)
    assert "100 bytes" in event.message
    assert model.bodies == []


async def test_a_stream_that_dies_ends_in_an_error_event(
    gateway: Gateway, model: ModelServer
) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint, openai_client(endpoint) as client:
        stream = await client.chat.completions.create(
            model="dies", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        with pytest.raises(openai.APIError, match="broke off"):
            async for _ in stream:
                pass
        assert endpoint.calls[0].status == 502


@pytest.mark.parametrize("stream", [False, True])
async def test_invalid_utf8_is_not_passed_on(
    gateway: Gateway, model: ModelServer, stream: bool
) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        answer = await post(endpoint, chat("invalid-utf8", stream=stream))
        [call] = endpoint.calls
    assert b"\xff" not in answer.content
    assert call.status == 502
    if stream:
        assert '"one"' in answer.text
        assert answer.text.rstrip().split("\n\n")[-1].startswith("event: error\n")
        assert "not UTF-8" in (call.error or "")
    else:
        assert answer.status_code == 502
        assert answer.json()["error"]["code"] == "upstream_garbage"


async def test_a_stream_that_never_ends_is_ended_by_the_calls_deadline(model: ModelServer) -> None:
    limits = GatewayLimits(max_call_sec=0.3, max_record_bytes=500)
    async with Gateway() as gateway, gateway.open("r1", model.url, KEY, limits) as endpoint:
        began = time.perf_counter()
        answer = await post(endpoint, chat("endless", stream=True))
        assert time.perf_counter() - began < 5
        with anyio.fail_after(5):
            await model.abandoned.wait()
        [call] = endpoint.calls
        [event] = endpoint.summary().limit_events
    assert "max_call_sec" in answer.text.rstrip().split("\n\n")[-1]
    assert (call.status, event.limit) == (504, "max_call_sec")


async def test_an_upstream_that_falls_silent_is_a_504(model: ModelServer) -> None:
    limits = GatewayLimits(upstream_idle_sec=0.2)
    async with Gateway(limits=limits) as gateway, gateway.open("r1", model.url, KEY) as endpoint:
        whole = await post(endpoint, chat("hangs"))
        streamed = await post(endpoint, chat("slow-stream", stream=True))
    assert (whole.status_code, whole.json()["error"]["code"]) == (504, "upstream_timeout")
    assert "was silent for 0.2 s" in streamed.text
    assert [call.status for call in endpoint.calls] == [504, 504]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_object_with_200_is_passed_on_and_counted(
    gateway: Gateway, model: ModelServer, stream: bool
) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        answer = await post(endpoint, chat("error-with-200", stream=stream))
        [call] = endpoint.calls
    assert answer.status_code == 200
    assert "out of memory" in answer.text
    assert "out of memory" in (call.error or "")
    assert call.status == (502 if stream else 200)
    assert endpoint.summary().errors == 1


async def test_an_upstream_that_is_down_is_a_502_and_the_record_names_it(gateway: Gateway) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        limits = GatewayLimits(upstream_attempts=2)
        async with gateway.open("r1", url, limits=limits) as endpoint:
            answer = await post(endpoint, chat("plain"))
            [call] = endpoint.calls
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_unreachable")
    assert url not in answer.text
    assert url in (call.error or "")


async def test_another_model_name_is_the_upstreams_business_unless_one_is_set(
    gateway: Gateway, model: ModelServer
) -> None:
    async with (
        gateway.open("r1", model.url, KEY) as as_it_is,
        gateway.open("r2", model.url, KEY, model="plain") as renamed,
    ):
        await post(as_it_is, chat("plain"))
        await post(renamed, chat("osmosis-rollout", seed=7))
        [call] = renamed.calls
    assert [body["model"] for body in model.bodies] == ["plain", "plain"]
    assert model.bodies[1] == chat("plain", seed=7)
    assert (call.request_model, call.model) == ("osmosis-rollout", "served-plain")


async def test_a_rollout_without_a_model_says_so(gateway: Gateway) -> None:
    async with gateway.open("r1", None) as endpoint:
        answer = await post(endpoint, chat("plain"))
        assert endpoint.summary().errors == 1
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_model")
    assert "chat_completions_url" in answer.json()["error"]["message"]


async def test_every_limit_leaves_an_event_and_the_list_is_bounded(gateway: Gateway) -> None:
    limits = GatewayLimits(max_calls=1)
    async with gateway.open("r1", "embedded/echo", limits=limits) as endpoint:
        for _ in range(31):
            await post(endpoint, chat("m"))
        summary = endpoint.summary()
    assert summary.limits_exceeded == 30
    assert len(summary.limit_events) == 20
    assert {(event.limit, event.value) for event in summary.limit_events} == {("max_calls", 1)}
    assert "max_calls=1" in summary.limit_events[0].message
