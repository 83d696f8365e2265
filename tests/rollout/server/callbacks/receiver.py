"""A trainer's callback routes on a real port, which misbehave as told."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.http_server import serving

type Answer = Callable[[web.Request], web.StreamResponse | None]


@dataclass
class Received:
    """One request that came in."""

    path: str
    body: bytes
    headers: dict[str, str]
    at: float


@dataclass
class Receiver:
    """Keeps what it got and answers from ``script`` in turn, then always with 200 and ``{}``.

    A script entry is a status, a whole answer, ``"drop"`` (close without an
    answer) or ``"hang"``.
    """

    url: str = ""
    script: list[int | str | web.Response] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    at_once: int = 0
    most_at_once: int = 0
    always: int | str | None = None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._answer(request)
        finally:
            self.at_once -= 1

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        now = asyncio.get_running_loop().time()
        body = await request.read()
        self.received.append(Received(request.path_qs, body, dict(request.headers), now))
        self.came.set()
        step = self.script.pop(0) if self.script else self.always
        if step == "hang":
            await asyncio.Event().wait()
        if step == "drop":
            assert request.transport is not None
            request.transport.abort()
            raise asyncio.CancelledError
        if step == "half":
            response = web.StreamResponse(headers={"Content-Length": "100"})
            await response.prepare(request)
            await response.write(b'{"traj')
            assert request.transport is not None
            request.transport.close()
            return response
        if isinstance(step, web.Response):
            return step
        return web.json_response({}, status=step if isinstance(step, int) else 200)


@asynccontextmanager
async def receiver(port: int = 0) -> AsyncIterator[Receiver]:
    """Run a receiver until the block ends; hanging requests end with it."""
    running = Receiver()
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", running.answer)
    async with serving(app, port) as running.url:
        yield running
