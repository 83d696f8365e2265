"""A rollout server on a real port that answers each route as a test's script says."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

from tests.http_server import serving

ADMISSION = {
    "rollout_id": "r-1",
    "status": "queued",
    "polling_lease_token": "token",
    "result_wait_timeout_sec": 0.5,
    "polling_lease_timeout_sec": 2.0,
}

type Fault = Literal["drop", "hang"]
type Step = Fault | int | dict[str, Any] | Callable[[], web.Response]


@dataclass
class Call:
    """A request that came in."""

    route: str
    query: str
    body: bytes
    headers: dict[str, str]
    at: float


@dataclass
class Scripted:
    """Answers ``steps[route]`` in turn, and its last one for ever.

    A step is a status, a JSON object for 200 (202 for admissions), ``"drop"``
    (the request arrives, the connection ends unanswered), ``"hang"``, or a
    function that makes the answer.
    """

    url: str = ""
    steps: dict[str, list[Step]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def count(self, route: str) -> int:
        """How often a route was asked."""
        return sum(call.route == route for call in self.calls)

    def of(self, route: str) -> list[Call]:
        """The requests of a route."""
        return [call for call in self.calls if call.route == route]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        route = f"{request.method} {request.path}"
        now = asyncio.get_running_loop().time()
        headers, query = dict(request.headers), request.query_string
        self.calls.append(Call(route, query, await request.read(), headers, now))
        self.came.set()
        steps = self.steps.get(route, [404])
        step = steps.pop(0) if len(steps) > 1 else steps[0]
        if step == "hang":
            await asyncio.Event().wait()
        if step == "drop":
            assert request.transport is not None
            request.transport.abort()
            raise asyncio.CancelledError
        if isinstance(step, int):
            return web.json_response({"detail": f"scripted {step}"}, status=step)
        if isinstance(step, dict):
            return web.json_response(step, status=202 if route == "POST /rollout" else 200)
        assert callable(step)
        return step()


POLL = "GET /rollout/r-1/result"
ADMIT = "POST /rollout"
HEALTH = "GET /health"


def told(status: str, **fields: Any) -> dict[str, Any]:
    """A poll's answer."""
    empty = {"sample": None, "err_message": None, "err_category": None}
    return {"rollout_id": "r-1", "status": status} | empty | fields


def answered(status: int, body: Any = None, **headers: str) -> Callable[[], web.Response]:
    """A step with headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda: web.Response(
        status=status, text=json.dumps(body), content_type="application/json", headers=named
    )


@asynccontextmanager
async def scripted(port: int = 0, **steps: list[Step]) -> AsyncIterator[Scripted]:
    """Run a server with steps for ``admit``, ``poll`` and ``health``."""
    names = {"admit": ADMIT, "poll": POLL, "health": HEALTH}
    routes: dict[str, list[Step]] = defaultdict(list)
    routes |= {ADMIT: [ADMISSION], POLL: [told("success")]}
    routes |= {names[name]: list(given) for name, given in steps.items()}
    running = Scripted(steps=routes)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", running.answer)
    async with serving(app, port) as running.url:
        yield running
