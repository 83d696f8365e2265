"""A trainer that takes callbacks, and keeps every byte of them."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from tests.experiments.server_kill.moments import ACKNOWLEDGED, DELIVERY, Census, Moments
from tests.experiments.server_kill.rollouts import Callback, Rollout

_UNDER_WAY = "callback under way"


class Receiver:
    """Answers 200 mostly; sometimes late, sometimes 500, sometimes not at all."""

    def __init__(
        self,
        rollouts: dict[str, Rollout],
        moments: Moments,
        census: Census,
        problems: list[str],
        incarnation: Callable[[], int],
        rng: random.Random,
    ) -> None:
        self._rollouts = rollouts
        self._moments = moments
        self._census = census
        self._problems = problems
        self._incarnation = incarnation
        self._rng = rng
        self.changed = asyncio.Condition()
        self.url = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take callbacks while the block runs."""
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/{kind}/{rollout_id}", self._take)
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield
        finally:
            await runner.cleanup()

    async def _take(self, request: web.Request) -> web.StreamResponse:
        kind, rollout_id = request.match_info["kind"], request.match_info["rollout_id"]
        try:
            body = await request.read()
        except OSError:
            return web.Response(status=400)  # the sender was killed before it had said all
        self._census.move(None, _UNDER_WAY)
        try:
            return await self._answer(request, kind, rollout_id, body)
        finally:
            self._census.move(_UNDER_WAY, None)

    async def _answer(
        self, request: web.Request, kind: str, rollout_id: str, body: bytes
    ) -> web.StreamResponse:
        rollout = self._rollouts.get(rollout_id)
        if rollout is None:
            self._problems.append(f"{rollout_id}: a {kind} callback that nobody asked for")
            return web.Response(status=404)
        if request.headers.get("Authorization") != f"Bearer controller-of-{rollout_id}":
            self._problems.append(f"{rollout_id}: a {kind} callback without its credential")
        if kind == "grader" and not rollout.callbacks.get("completion", Callback()).acknowledged_in:
            self._problems.append(f"{rollout_id}: grader callback before completion was taken")
        known = rollout.callbacks.setdefault(kind, Callback())
        now = self._incarnation()
        if now in known.acknowledged_in:
            self._problems.append(f"{rollout_id}: {kind} callback again, though it was taken")
        known.bodies.append(body)
        self._moments.happened(DELIVERY)
        chance = self._rng.random()
        if chance < 0.1:
            return web.Response(status=500)
        if chance < 0.2:
            await asyncio.sleep(self._rng.uniform(0, 0.05))
        if chance > 0.95 and request.transport is not None:
            request.transport.abort()  # the sender cannot know whether it was taken
            return web.Response()
        known.acknowledged_in.append(now)
        answer = web.json_response({})
        try:
            await answer.prepare(request)
            await answer.write_eof()
        except ConnectionError:
            known.acknowledged_in[-1] = -1  # the sender was killed meanwhile
        async with self.changed:
            self.changed.notify_all()
        self._moments.happened(ACKNOWLEDGED)
        return answer
