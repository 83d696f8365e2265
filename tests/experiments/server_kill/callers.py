"""Callers that submit, poll and read again, whatever happens to the server."""

import asyncio
import json
import random
from typing import Any

import aiohttp

from tests.experiments.server_kill.moments import (
    ADMISSION,
    GRADING,
    PUBLISHING,
    RUNNING,
    Census,
    Moments,
)
from tests.experiments.server_kill.receiver import Receiver
from tests.experiments.server_kill.rollouts import TERMINAL, Rollout, make_rollout
from tests.experiments.server_kill.victim import AUTHORIZED

LEASE_HEADER = "X-Osmosis-Rollout-Lease"
_PAUSE_SEC = 0.05
# A status also says which server has the rollout and until when, which a restart changes.
_LASTING = ("rollout_id", "status", "reward", "err_message", "err_category", "finished_at")
_SEEN = {"running": RUNNING, "grading": GRADING}


class Callers:
    """Everything that asks the server for something."""

    def __init__(
        self,
        url: str,
        receiver: Receiver,
        rollouts: dict[str, Rollout],
        moments: Moments,
        census: Census,
        problems: list[str],
        rng: random.Random,
    ) -> None:
        self._url = url
        self._receiver = receiver
        self._rollouts = rollouts
        self._moments = moments
        self._census = census
        self._problems = problems
        self._rng = rng
        self.stopping = False
        self.reads = 0
        self.replays = 0

    async def run(self, callers: int) -> None:
        """Submit rollouts and follow each to its end, until ``stopping``."""
        connector = aiohttp.TCPConnector(limit=0)
        async with (
            aiohttp.ClientSession(self._url, connector=connector, headers=AUTHORIZED) as self._http,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(callers):
                group.create_task(self._call())

    async def check_again(self) -> None:
        """Read every result once more, and the files of those that succeeded."""
        async with aiohttp.ClientSession(self._url, headers=AUTHORIZED) as self._http:
            for rollout in list(self._rollouts.values()):
                if rollout.result is not None:
                    await self._read_again(rollout)
                    if rollout.ended["status"] == "success":
                        await self._read_files(rollout)

    async def _call(self) -> None:
        while not self.stopping:
            number = len(self._rollouts)
            rollout = make_rollout(number, self._receiver.url, self._rng)
            self._rollouts[rollout.id] = rollout
            await self._admit(rollout)
            if self._rng.random() < 0.1:
                self.replays += 1
                await self._admit(rollout)
            while rollout.result is None:
                await self._look(rollout)
            self._move(rollout, None)
            await self._read_again(self._rng.choice(list(self._rollouts.values())))

    async def _admit(self, rollout: Rollout) -> None:
        while True:
            self._moments.happened(ADMISSION)
            if not rollout.admitted:
                self._move(rollout, "admission")
            status, answer = await self._ask("POST", "/rollout", rollout.body)
            if status == 202:
                break
            if status not in {0, 429, 503}:
                self._problems.append(f"{rollout.id}: admission answered {status} {answer!r}")
            await asyncio.sleep(_PAUSE_SEC)
        rollout.admitted = True
        if rollout.protocol == "callback":
            return
        token = json.loads(answer)["polling_lease_token"]
        if rollout.token not in {None, token}:
            self._problems.append(f"{rollout.id}: another token for the same request")
        rollout.token = token

    async def _look(self, rollout: Rollout) -> None:
        """Ask once how the rollout is."""
        status, answer = await self._result(rollout)
        if status != 200:
            if status:
                self._problems.append(f"{rollout.id}: its result answered {status} {answer!r}")
            await asyncio.sleep(_PAUSE_SEC)
            return
        found = json.loads(answer)["status"]
        if found in TERMINAL:
            rollout.result = answer
            self._moments.happened(PUBLISHING)
            return
        self._move(rollout, found)
        if moment := _SEEN.get(found):
            self._moments.happened(moment)
        if rollout.protocol == "callback":
            await asyncio.sleep(_PAUSE_SEC / 2)

    async def _read_again(self, rollout: Rollout) -> None:
        if rollout.result is None:
            return
        while True:
            status, answer = await self._result(rollout)
            if status:
                break
            await asyncio.sleep(_PAUSE_SEC)
        self.reads += 1
        if (status, answer) != (200, rollout.result):
            self._problems.append(
                f"{rollout.id}: published {rollout.result!r}, then read {status} {answer!r}"
            )

    async def _read_files(self, rollout: Rollout) -> None:
        whose = await self._ask("GET", f"/rollout/{rollout.id}/artifacts/whose")
        if whose != (200, rollout.id.encode()):
            self._problems.append(f"{rollout.id}: its artifact is {whose}")
        status, trajectory = await self._ask("GET", f"/rollout/{rollout.id}/trajectory")
        if status != 200 or f"answer of {rollout.id}".encode() not in trajectory:
            self._problems.append(f"{rollout.id}: its trajectory is {status} {trajectory!r}")

    async def _result(self, rollout: Rollout) -> tuple[int, bytes]:
        if rollout.protocol == "callback":
            status, answer = await self._ask("GET", f"/rollout/{rollout.id}/status")
            return status, _lasting(answer) if status == 200 else answer
        headers = {LEASE_HEADER: rollout.token or ""}
        return await self._ask("GET", f"/rollout/{rollout.id}/result", headers=headers)

    async def _ask(
        self, method: str, path: str, body: bytes | None = None, **arguments: Any
    ) -> tuple[int, bytes]:
        """The status and the whole body; status 0 when the server died meanwhile."""
        if body is not None:
            arguments["headers"] = {"Content-Type": "application/json"}
        timeout = aiohttp.ClientTimeout(30)
        try:
            async with self._http.request(
                method, path, data=body, timeout=timeout, **arguments
            ) as answer:
                return answer.status, await answer.read()
        except (aiohttp.ClientError, OSError) as exc:
            if isinstance(exc, TimeoutError):
                self._problems.append(f"{method} {path}: no answer in 30 s")
            return 0, b""

    def _move(self, rollout: Rollout, place: str | None) -> None:
        self._census.move(rollout.place, place)
        rollout.place = place


def _lasting(answer: bytes) -> bytes:
    """The part of a status that no restart may change."""
    found = json.loads(answer)
    return json.dumps({name: found[name] for name in _LASTING}).encode()
