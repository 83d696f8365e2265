"""The relay between a sandbox's loopback and a unix socket, with real servers behind it."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from aiohttp import web
from openai import AsyncOpenAI

from osmosis_ai.gateway import Gateway
from osmosis_ai.rollout.container.relay import Relay
from tests.local_backend.gates import until

type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def unix_server(path: Path, handler: Handler) -> AsyncIterator[Relay]:
    """A relay in front of an HTTP server that answers every request with ``handler``."""
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.UnixSite(runner, str(path)).start()
        with Relay(str(path)) as relay:
            yield relay
    finally:
        await runner.cleanup()


def client() -> httpx.AsyncClient:
    return httpx.AsyncClient(trust_env=False, timeout=20)


async def test_an_embedded_policy_through_the_gateways_socket(tmp_path: Path) -> None:
    path = tmp_path / "gateway.sock"
    async with (
        Gateway() as gateway,
        gateway.open("r1", "embedded/multiply") as endpoint,
        endpoint.listen_unix(path),
    ):
        with Relay(str(path)) as relay:
            openai = AsyncOpenAI(
                base_url=relay.url, api_key="none", http_client=cast("Any", client())
            )
            async with openai:
                stream = await openai.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "12 x 34"}], stream=True
                )
                pieces = [c.choices[0].delta.content async for c in stream if c.choices]
    assert "".join(piece or "" for piece in pieces).endswith("#### 408")


async def test_a_stream_passes_chunk_by_chunk(tmp_path: Path) -> None:
    seen = [asyncio.Event() for _ in range(4)]

    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for number, event in enumerate(seen):
            await answer.write(f"chunk {number}".encode())
            await event.wait()  # no further chunk before the client has this one
        return answer

    async with (
        unix_server(tmp_path / "s", handler) as relay,
        client() as http,
        http.stream("GET", relay.url) as answer,
    ):
        number = 0
        async for chunk in answer.aiter_raw():
            assert chunk == f"chunk {number}".encode()
            seen[number].set()
            number += 1
    assert number == len(seen)


async def test_many_connections_at_once(tmp_path: Path) -> None:
    together = asyncio.Barrier(40)

    async def handler(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        await together.wait()
        return web.Response(body=body[::-1])

    async with unix_server(tmp_path / "s", handler) as relay, client() as http:

        async def call(number: int) -> bool:
            body = f"{number:06}".encode() * 50_000
            answer = await http.post(relay.url, content=body)
            return answer.content == body[::-1]

        assert all(await asyncio.gather(*(call(number) for number in range(40))))


async def test_a_client_that_leaves_ends_the_call(tmp_path: Path) -> None:
    entered, cancelled = asyncio.Event(), asyncio.Event()
    threads = threading.active_count()

    async def handler(request: web.Request) -> web.StreamResponse:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return web.Response()

    async with unix_server(tmp_path / "s", handler) as relay:
        async with client() as http:
            call = asyncio.create_task(http.get(relay.url))
            await entered.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        async with asyncio.timeout(10):
            await cancelled.wait()
        await until(lambda: threading.active_count() <= threads + 1)  # the relay's own
    await until(lambda: threading.active_count() <= threads)


async def test_a_gateway_that_is_not_there(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(text="here")

    path = tmp_path / "s"
    with Relay(str(path)) as relay:
        async with client() as http:
            with pytest.raises(httpx.TransportError):
                await http.get(relay.url)
            assert "gateway unreachable" in capfd.readouterr().err
            async with unix_server(path, handler):  # it is looked for at every connection
                assert (await http.get(relay.url)).text == "here"


def test_it_listens_on_the_loopback_until_the_block_ends(tmp_path: Path) -> None:
    with Relay(str(tmp_path / "s")) as relay:
        url = httpx.URL(relay.url)
        assert (url.scheme, url.host, url.path) == ("http", "127.0.0.1", "/v1")
        assert url.port is not None
        socket.create_connection((url.host, url.port), timeout=5).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((url.host, url.port), timeout=5)
