"""Trainers whose callback routes hang, redirect, refuse to work, or never finish an answer."""

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from tests.experiments.server_hostile.attacks.base import Target, ask, every
from tests.experiments.server_hostile.honest import rollout

PER_SEC = 4


@asynccontextmanager
async def bad_receivers(target: Target) -> AsyncIterator[None]:
    """4 rollouts a second that are called back, in turn at four receivers of that kind."""
    async with AsyncExitStack() as stack:
        urls = [
            await stack.enter_async_context(_receiver(target, answer))
            for answer in (_hang, _redirect, _fail, _trickle)
        ]
        turns = itertools.cycle(urls)

        async def one() -> None:
            url = next(turns)
            name = f"bad-{uuid.uuid4().hex}"
            fields = {"completion_callback_url": f"{url}/c", "grader_callback_url": f"{url}/g"}
            await ask(target, "/rollout", rollout(name, 0.1) | fields)

        try:
            async with every(1 / target.times(PER_SEC), one):
                yield
        finally:
            await ask(target, "/rollout/cancel", {"prefix": "bad-"})


@asynccontextmanager
async def _receiver(target: Target, answer: object) -> AsyncIterator[str]:
    async def counted(request: web.Request) -> web.StreamResponse:
        target.answers[f"called {answer.__name__[1:]}"] += 1  # type: ignore[attr-defined]
        return await answer(request)  # type: ignore[operator, no-any-return]

    app = web.Application()
    app.router.add_post("/{kind}", counted)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _hang(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


async def _redirect(request: web.Request) -> web.StreamResponse:
    raise web.HTTPTemporaryRedirect(str(request.url))


async def _fail(request: web.Request) -> web.StreamResponse:
    return web.json_response({"detail": "later"}, status=500)


async def _trickle(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.5)
