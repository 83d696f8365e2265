"""The gateway between a real client and a real model server."""

import socket
from typing import Any

import anyio
import httpx
import openai
import pytest

from osmosis_ai.gateway import Gateway, GatewayLimits
from tests.gateway.clients import chat, openai_client, post
from tests.gateway.model_server import KEY, ModelServer


async def test_only_the_real_key_reaches_the_upstream(gateway: Gateway, model: ModelServer) -> None:
    extra = {
        "X-Api-Key": "placeholder",
        "Cookie": "session=1",
        "Connection": "keep-alive, X-Private",
        "X-Private": "1",
        "OpenAI-Beta": "kept",
    }
    async with gateway.open("r1", model.url, api_key=KEY) as endpoint:
        answer = await post(endpoint, chat("plain"), headers=extra)
        assert answer.status_code == 200
        token = endpoint.token
    [seen] = model.headers
    assert seen["Authorization"] == f"Bearer {KEY}"
    assert seen["Accept-Encoding"] == "identity"
    assert seen["OpenAI-Beta"] == "kept"
    assert not {"X-Api-Key", "Cookie", "X-Private"} & set(seen)
    assert token not in str(seen)
    assert answer.headers["x-request-id"] == "r1"
    assert "set-cookie" not in answer.headers


async def test_without_a_key_none_is_sent(gateway: Gateway, model: ModelServer) -> None:
    async with gateway.open("r1", model.url) as endpoint:
        answer = await post(endpoint, chat("plain"))
    assert answer.status_code == 401
    assert answer.json()["error"]["message"] == "who are you"
    assert "Authorization" not in model.headers[0]


async def test_unknown_fields_pass_both_ways(gateway: Gateway, model: ModelServer) -> None:
    body = chat("plain", made_up={"deep": [1, None]}, temperature=0.3)
    async with gateway.open("r1", f"{model.url}/chat/completions?api-version=3", KEY) as endpoint:
        answer = await post(endpoint, body)
    assert model.bodies == [body]
    assert model.queries == ["api-version=3"]
    assert answer.json()["choices"][0]["message"]["made_up_field"] == {"kept": True}


async def test_a_stream_arrives_while_it_is_made(gateway: Gateway, model: ModelServer) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        async with openai_client(endpoint) as client:
            stream = await client.chat.completions.create(
                model="slow-stream", messages=[{"role": "user", "content": "hi"}], stream=True
            )
            texts: list[str] = []
            async for chunk in stream:
                if text := chunk.choices[0].delta.content:
                    texts.append(text)
                if texts == ["one"]:
                    # The server waits for this: had the gateway buffered, nobody would move.
                    model.go_on.set()
        [call] = endpoint.calls
    assert texts == ["one", " two"]
    assert (call.model, call.finish_reason, call.error) == ("served-model", "stop", None)
    # The usage event was asked for on the record's behalf; the agent did not see it.
    assert endpoint.summary().prompt_tokens == 11


async def test_an_upstream_that_dies_mid_stream_ends_in_an_error_event(
    gateway: Gateway, model: ModelServer
) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        async with openai_client(endpoint) as client:
            stream = await client.chat.completions.create(
                model="dies", messages=[{"role": "user", "content": "hi"}], stream=True
            )
            texts: list[str | None] = []

            async def read() -> None:
                async for chunk in stream:
                    texts.append(chunk.choices[0].delta.content)  # noqa: PERF401

            with pytest.raises(openai.APIError, match="broke off"):
                await read()
        [call] = endpoint.calls
    assert texts == ["", "one"]
    assert call.status == 502
    assert "broke off" in (call.error or "")
    assert endpoint.summary().first_error == call.error


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("ends-early", "ended before the answer did"), ("garbage-event", "<html>")],
)
async def test_a_stream_that_goes_wrong_says_so(
    gateway: Gateway, model: ModelServer, name: str, complaint: str
) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        answer = await post(endpoint, chat(name, stream=True))
        assert endpoint.summary().errors == 1
        if name == "garbage-event":
            with anyio.fail_after(5):
                await model.abandoned.wait()
    last = answer.text.strip().split("\n\n")[-1]
    assert last.startswith("event: error\ndata: {")
    assert complaint in last
    assert answer.text.count("<html>") <= 1


async def test_busy_with_retry_after_is_tried_again(gateway: Gateway, model: ModelServer) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        answer = await post(endpoint, chat("busy-once"))
        summary = endpoint.summary()
    assert answer.status_code == 200
    assert len(model.bodies) == 2
    assert (summary.calls, summary.errors) == (1, 0)


async def test_busy_for_good_is_passed_on_after_the_last_try(
    gateway: Gateway, model: ModelServer
) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        answer = await post(endpoint, chat("busy"))
    assert answer.status_code == 503
    assert answer.json() == {"error": "overloaded"}
    assert len(model.bodies) == GatewayLimits().upstream_attempts
    assert answer.headers["x-should-retry"] == "false"


async def test_a_long_retry_after_is_left_to_the_client(
    gateway: Gateway, model: ModelServer
) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        answer = await post(endpoint, chat("busy-for-long"))
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3600")
    assert len(model.bodies) == 1


async def test_an_upstreams_error_passes_but_not_the_key_in_it(
    gateway: Gateway, model: ModelServer
) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        answer = await post(endpoint, chat("fails"))
        [call] = endpoint.calls
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "boom"
    assert answer.json()["error"]["message"] == "bad key [REDACTED]"
    assert call.status == 500
    assert KEY not in (call.error or "")
    assert len(model.bodies) == 1


@pytest.mark.parametrize(
    ("name", "code", "complaint"),
    [
        ("garbage", "upstream_garbage", "<html>hello"),
        ("elsewhere", "upstream_redirect", "redirects are not followed"),
    ],
)
async def test_an_answer_that_is_none_is_a_502(
    gateway: Gateway, model: ModelServer, name: str, code: str, complaint: str
) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        answer = await post(endpoint, chat(name))
        [call] = endpoint.calls
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == code
    assert complaint in answer.json()["error"]["message"]
    assert complaint in (call.error or "")


async def test_an_upstream_that_is_down_is_a_502_and_its_address_the_operators(
    gateway: Gateway,
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        port = taken.getsockname()[1]
        async with gateway.open("r1", f"http://user:pw@127.0.0.1:{port}/v1") as endpoint:
            answer = await post(endpoint, chat("plain"))
            [call] = endpoint.calls
    message = answer.json()["error"]["message"]
    assert answer.status_code == 502
    assert str(port) not in message
    assert "127.0.0.1" not in message
    assert "check that the model server is running" in message
    assert f"http://127.0.0.1:{port}/v1" in (call.error or "")
    assert answer.headers["x-should-retry"] == "false"


async def test_an_upstream_that_comes_up_late_is_reached(model: ModelServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    answers: list[httpx.Response] = []

    async def forward(client: anyio.abc.SocketStream) -> None:
        host, real_port = httpx.URL(model.url).host, httpx.URL(model.url).port
        assert real_port is not None
        async with client, await anyio.connect_tcp(host, real_port) as server:

            async def copy(source: Any, target: Any) -> None:
                async for data in source:
                    await target.send(data)

            async with anyio.create_task_group() as pipes:
                pipes.start_soon(copy, client, server)
                await copy(server, client)
                pipes.cancel_scope.cancel()

    async with (
        Gateway() as gateway,
        gateway.open("r1", f"http://127.0.0.1:{port}/v1", KEY) as endpoint,
        anyio.create_task_group() as group,
    ):

        async def ask() -> None:
            answers.append(await post(endpoint, chat("plain")))
            group.cancel_scope.cancel()

        group.start_soon(ask)
        await anyio.sleep(0.1)
        async with await anyio.create_tcp_listener(
            local_host="127.0.0.1", local_port=port
        ) as listener:
            await listener.serve(forward, group)
    assert answers[0].status_code == 200


async def test_a_silent_upstream_is_a_504(model: ModelServer) -> None:
    limits = GatewayLimits(upstream_idle_sec=0.2)
    async with Gateway(limits=limits) as gateway, gateway.open("r1", model.url, KEY) as endpoint:
        answer = await post(endpoint, chat("hangs"))
    assert answer.status_code == 504
    assert answer.json()["error"]["code"] == "upstream_timeout"


async def test_models_are_the_upstreams(gateway: Gateway, model: ModelServer) -> None:
    async with (
        gateway.open("r1", model.url, KEY) as endpoint,
        openai_client(endpoint) as client,
    ):
        models = await client.models.list()
        assert endpoint.summary().calls == 0
    assert [listed.id for listed in models.data] == ["plain"]


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "schlüssel"])
async def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(
    gateway: Gateway, model: ModelServer, key: str
) -> None:
    with pytest.raises(ValueError, match="api_key") as refused:
        async with gateway.open("r1", model.url, key):
            pass
    assert not key or key not in str(refused.value)


@pytest.mark.parametrize("fields", [{"status": 500}, {"status": 200}, {"stream": True}])
async def test_a_sandbox_hears_neither_the_key_nor_where_its_model_is(
    gateway: Gateway, model: ModelServer, fields: dict[str, Any]
) -> None:
    async with gateway.open("r1", model.url, KEY) as endpoint:
        answer = await post(endpoint, chat("tells", **fields))
        [call] = endpoint.calls
    seen = answer.text + str(answer.headers)
    assert "x-told" in answer.headers
    assert "location" not in answer.headers
    host, _, port = model.url.removeprefix("http://").removesuffix("/v1").partition(":")
    assert not [secret for secret in (KEY, model.url, host, port) if secret in seen]
    assert "[MODEL SERVER]" in answer.text
    assert KEY not in (call.error or "")
    assert model.url in (call.error or model.url)


async def test_keys_in_the_upstreams_url_are_hidden_too(
    gateway: Gateway, model: ModelServer
) -> None:
    url = model.url.replace("http://", "http://user:a-password-of-it@") + "?api_key=a-key-of-it"
    async with gateway.open("r1", url) as endpoint:
        hidden = endpoint.redact("a-password-of-it a-key-of-it")
    assert hidden == "[REDACTED] [REDACTED]"
