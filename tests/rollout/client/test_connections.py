"""Many polls at once, over the client's own connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest
from aiohttp import web

from osmosis_ai.rollout.client.connections import ConnectionPerRequest
from tests.local_backend.gates import until


@dataclass
class Server:
    """Holds every request until it is opened."""

    url: str = ""
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    inside: int = 0
    connections: set[int] = field(default_factory=set)


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        server.connections.add(request.transport.get_extra_info("peername")[1])
        server.inside += 1
        await server.opened.wait()
        return web.Response(text=request.path)

    app = web.Application()
    app.router.add_get("/{number}", answer)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        await runner.cleanup()


async def test_every_request_at_once_has_a_connection_and_keeps_it() -> None:
    async with serving() as server, httpx.AsyncClient(transport=ConnectionPerRequest()) as http:
        async with asyncio.TaskGroup() as group:
            gets = [
                group.create_task(http.get(f"{server.url}/{n}", timeout=20)) for n in range(300)
            ]
            await until(lambda: server.inside == 300)
            server.opened.set()
        assert [get.result().text for get in gets] == [f"/{n}" for n in range(300)]
        assert len(server.connections) == 300
        for number in range(20):
            await http.get(f"{server.url}/{number}")
        assert len(server.connections) == 300


async def test_a_cancelled_request_spoils_no_later_one() -> None:
    async with serving() as server, httpx.AsyncClient(transport=ConnectionPerRequest()) as http:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await http.get(f"{server.url}/first")
        server.opened.set()
        assert (await http.get(f"{server.url}/second")).text == "/second"
        with pytest.raises(httpx.ConnectError):
            await http.get("http://127.0.0.1:1/")
        assert (await http.get(f"{server.url}/third")).text == "/third"
