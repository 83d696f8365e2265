"""What code in a sandbox sends to hold memory, connections or the loop, and what becomes of it."""

import gzip
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import httpx
import pytest

from osmosis_ai.gateway import Gateway, GatewayLimits
from osmosis_ai.gateway.bodies import parse_request
from osmosis_ai.gateway.connections import ConnectionBudget, Connections
from tests.gateway.clients import chat, post
from tests.gateway.model_server import KEY, ModelServer

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"


@asynccontextmanager
async def socket_of(
    gateway: Gateway, rollout_id: str = "r1", limits: GatewayLimits | None = None
) -> AsyncIterator[tuple[Any, str]]:
    with TemporaryDirectory(prefix="gw") as directory:
        path = Path(directory) / "model.sock"
        async with (
            gateway.open(rollout_id, "embedded/echo", limits=limits) as endpoint,
            endpoint.listen_unix(path),
        ):
            yield endpoint, str(path)


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not holds():  # noqa: ASYNC110 (the gateway offers no event to wait on)
            await anyio.sleep(0.01)


async def ask(path: str) -> int:
    transport = httpx.AsyncHTTPTransport(uds=path)
    async with httpx.AsyncClient(transport=transport, timeout=10) as client:
        return (await client.post("http://x/v1/chat/completions", json=chat("m"))).status_code


async def read_all(stream: Any) -> bytes:
    data = b""
    with anyio.fail_after(10):
        try:
            while True:
                data += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return data


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "GZIP, identity"])
async def test_compressed_bodies_are_refused(gateway: Gateway, coding: str) -> None:
    async with gateway.open("r1", "embedded/echo") as endpoint:
        body = gzip.compress(json.dumps(chat("m", padding="x" * 1_000_000)).encode())
        answer = await post(endpoint, content=body, headers={"Content-Encoding": coding})
        assert (answer.status_code, answer.json()["error"]["code"]) == (415, "compressed_request")
        assert endpoint.holding.held == 0


async def test_a_body_that_parses_into_a_million_lists_is_refused_unparsed(
    gateway: Gateway,
) -> None:
    body = b'{"messages": [' + b"[]," * 300_000 + b"[]]}"
    async with gateway.open("r1", "embedded/echo") as endpoint:
        answer = await post(endpoint, content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_json")
    assert "values" in answer.json()["error"]["message"]


async def test_brackets_in_another_encoding_are_not_parsed_either(gateway: Gateway) -> None:
    body = ('{"messages": ["\u2222", ' + "[]," * 300_000 + "[]]}").encode("utf-16-le")
    async with gateway.open("r1", "embedded/echo") as endpoint:
        assert (await post(endpoint, content=body)).status_code == 400


async def test_by_default_a_body_has_16_mib(gateway: Gateway) -> None:
    async with gateway.open("r1", "embedded/echo") as endpoint:
        answer = await post(endpoint, content=b" " * (16 * 1024 * 1024 + 1))
    assert answer.status_code == 413


async def test_a_body_that_comes_slowly_has_a_deadline(gateway: Gateway) -> None:
    limits = GatewayLimits(request_read_sec=0.2)
    async with (
        socket_of(gateway, limits=limits) as (endpoint, path),
        await anyio.connect_unix(path) as stream,
    ):
        await stream.send(HEAD + b"Content-Length: 1000\r\nConnection: close\r\n\r\n{")
        with anyio.fail_after(5):
            answer = await stream.receive()
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"request_too_slow" in answer
        assert endpoint.holding.held == 0


async def test_bodies_that_are_held_are_bounded_in_sum(gateway: Gateway) -> None:
    limits = GatewayLimits(max_held_bytes=100_000)
    async with socket_of(gateway, limits=limits) as (endpoint, path), AsyncExitStack() as stack:
        held = [await stack.enter_async_context(await anyio.connect_unix(path)) for _ in range(2)]
        for stream in held:
            await stream.send(HEAD + b"Content-Length: 60000\r\n\r\n" + b" " * 45_000)
        await until(lambda: endpoint.holding.held >= 90_000)
        last = await stack.enter_async_context(await anyio.connect_unix(path))
        await last.send(HEAD + b"Content-Length: 20000\r\n\r\n" + b" " * 20_000)
        assert b"max_held_bytes_reached" in await last.receive()
        assert endpoint.holding.held <= 100_000
    assert endpoint.holding.held == 0


async def test_an_answer_counts_among_what_is_held(gateway: Gateway, model: ModelServer) -> None:
    limits = GatewayLimits(max_held_bytes=200)
    async with gateway.open("r1", model.url, KEY, limits) as endpoint:
        answer = await post(endpoint, chat("plain"))
        assert answer.json()["error"]["code"] == "max_held_bytes_reached"
        assert endpoint.holding.held == 0


async def test_a_connection_without_a_head_is_ended(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("osmosis_ai.gateway.listening._HEAD_SEC", 0.1)
    async with socket_of(gateway) as (_, path), await anyio.connect_unix(path) as stream:
        await stream.send(HEAD)
        assert await read_all(stream) == b""


async def test_a_rollout_has_so_many_connections_and_its_idle_ones_make_way(
    gateway: Gateway,
) -> None:
    limits = GatewayLimits(max_connections=4)
    async with socket_of(gateway, limits=limits) as (endpoint, path):
        flood = [socket.socket(socket.AF_UNIX) for _ in range(40)]
        for one in flood:
            one.connect(path)
        await until(lambda: len(endpoint.connections) >= 4)
        assert await ask(path) == 200
        assert len(endpoint.connections) <= 4
        for one in flood:
            one.close()


async def test_where_all_are_busy_one_more_is_told_so(gateway: Gateway) -> None:
    limits = GatewayLimits(max_connections=2)
    async with socket_of(gateway, limits=limits) as (endpoint, path), AsyncExitStack() as stack:
        for _ in range(2):
            busy = await stack.enter_async_context(await anyio.connect_unix(path))
            await busy.send(HEAD + b"Content-Length: 10\r\n\r\n{")
        await until(lambda: endpoint.holding.held >= 2)
        one_more = await stack.enter_async_context(await anyio.connect_unix(path))
        answer = await read_all(one_more)
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"GatewayLimits.max_connections is 2" in answer


async def test_connections_over_tcp_count_for_the_rollout_whose_token_they_bring(
    gateway: Gateway,
) -> None:
    limits = GatewayLimits(max_connections=1)
    async with gateway.open("r1", "embedded/echo", limits=limits) as endpoint:
        path = endpoint.url.removeprefix(f"http://{gateway.host}:{gateway.port}")
        async with await anyio.connect_tcp(gateway.host, gateway.port) as busy:
            head = f"POST {path}/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n"
            await busy.send(f"{head}Authorization: Bearer {endpoint.token}\r\n\r\n{{".encode())
            await until(lambda: endpoint.holding.held > 0)
            answer = await post(endpoint, chat("m"))
            async with gateway.open("r2", "embedded/echo") as neighbour:
                assert (await post(neighbour, chat("m"))).status_code == 200
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "too_many_connections")


class _Idle:
    def __init__(self) -> None:
        self.idle = True
        self.ended = False

    def end(self) -> None:
        self.ended = True


def test_beyond_the_descriptors_who_holds_the_most_gives_one_up() -> None:
    budget = ConnectionBudget(lambda: 6)
    greedy, neighbour = Connections(64), Connections(64)
    own = [_Idle() for _ in range(5)]
    assert all(budget.add(greedy, one) for one in own)
    assert budget.add(neighbour, _Idle())
    assert budget.add(neighbour, _Idle())
    assert (own[0].ended, len(greedy), len(neighbour)) == (True, 4, 2)
    for one in own:
        one.idle = False
    for owner in (greedy, neighbour):
        while owner.end_idle():
            pass
    busy = [_Idle() for _ in range(2)]
    for one in busy:
        one.idle = False
        assert budget.add(neighbour, one)
    assert not budget.add(neighbour, _Idle())


async def test_what_a_caller_repeats_is_logged_once(
    gateway: Gateway, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("osmosis_ai.gateway.exchange.parse_request", fails)
    with caplog.at_level(logging.INFO):
        async with socket_of(gateway) as (_, path):
            for _ in range(5):
                assert await ask(path) == 500
                async with await anyio.connect_unix(path) as stream:
                    await stream.send(b"nonsense\r\n\r\n")
                    await read_all(stream)
    assert len([r for r in caplog.records if r.message.startswith("a request to")]) == 1
    assert len([r for r in caplog.records if "Error handling" in r.message]) <= 1


async def test_a_large_body_is_parsed_off_the_loop_and_a_small_one_on_it(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def noted(body: bytes) -> dict[str, Any]:
        threads.append(threading.get_ident())
        return parse_request(body)

    monkeypatch.setattr("osmosis_ai.gateway.exchange.parse_request", noted)
    async with gateway.open("r1", "embedded/echo") as endpoint:
        for padding in ("x", "x" * 100_000):
            assert (await post(endpoint, chat("m", padding=padding))).status_code == 200
    small, large = threads
    assert small == threading.get_ident() != large
