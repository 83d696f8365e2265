"""Honest callers, and how long they wait."""

import asyncio
import json
import statistics
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from benchmarks.server_load.wire import Connection

_ROLLOUT_SEC = 0.15
_SPREAD_SEC = 0.1
_ENDED = {"success", "failure", "cancelled"}


@dataclass
class Waits:
    """Seconds that honest callers waited, by what for."""

    admission: list[float] = field(default_factory=list)
    result: list[float] = field(default_factory=list)
    reading: list[float] = field(default_factory=list)
    callback: list[float] = field(default_factory=list)

    def medians(self) -> dict[str, float]:
        """Milliseconds."""
        return {name: statistics.median(waits) * 1000 for name, waits in vars(self).items()}

    def add(self, other: "Waits") -> None:
        """Take in what was measured at another time."""
        for name, waits in vars(other).items():
            getattr(self, name).extend(waits)


class Honest:
    """Two callers that poll and one that is called back, each one rollout after the other."""

    def __init__(self, port: int, url: str, arrivals: dict[str, asyncio.Future[float]]) -> None:
        self._port = port
        self._url = url
        self._arrivals = arrivals

    async def measure(self, seconds: float) -> Waits:
        """Call for a while.

        Raises:
            RuntimeError: an honest request was not answered as it should.
        """
        waits = Waits()
        ends = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            for number in range(2):
                group.create_task(self._polls(waits, ends, number * _SPREAD_SEC))
            group.create_task(self._is_called_back(waits, ends))
        return waits

    async def _polls(self, waits: Waits, ends: float, later: float) -> None:
        await asyncio.sleep(later)
        connection = Connection(self._port)
        while time.monotonic() < ends:
            name = f"honest-{uuid.uuid4().hex}"
            token = (await self._admit(waits, connection, name))["polling_lease_token"]
            path = f"/rollout/{name}/result"
            while True:
                status, answer = await connection.ask("GET", path, X_Osmosis_Rollout_Lease=token)
                now = time.monotonic()
                _check(status == 200, "a poll", status, answer)
                if answer["status"] in _ENDED:
                    break
            _check(answer["status"] == "success", "a rollout", status, answer)
            waits.result.append(now - _ended(answer["sample"]))
            began = time.monotonic()
            again = await connection.ask("GET", path, X_Osmosis_Rollout_Lease=token)
            waits.reading.append(time.monotonic() - began)
            _check(again == (status, answer), "a result read again", *again)
            await asyncio.sleep(_SPREAD_SEC)
        await connection.close()

    async def _is_called_back(self, waits: Waits, ends: float) -> None:
        connection = Connection(self._port)
        while time.monotonic() < ends:
            name = f"honest-{uuid.uuid4().hex}"
            arrival = self._arrivals[name] = asyncio.get_running_loop().create_future()
            urls = {
                "completion_callback_url": f"{self._url}/completion",
                "grader_callback_url": f"{self._url}/grader",
            }
            await self._admit(waits, connection, name, **urls)
            async with asyncio.timeout(60):
                waits.callback.append(await arrival)
            await asyncio.sleep(_SPREAD_SEC)
        await connection.close()

    async def _admit(
        self, waits: Waits, connection: Connection, name: str, **fields: str
    ) -> dict[str, str]:
        began = time.monotonic()
        status, answer = await connection.ask("POST", "/rollout", rollout(name) | fields)
        waits.admission.append(time.monotonic() - began)
        _check(status == 202, "an admission", status, answer)
        return answer


@asynccontextmanager
async def honest_callers(port: int) -> AsyncIterator[Honest]:
    """Callers with a receiver of their own."""
    arrivals: dict[str, asyncio.Future[float]] = {}

    async def receive(request: web.Request) -> web.Response:
        body = await request.json()
        now = time.monotonic()
        if request.path == "/grader":
            arrivals.pop(body["rollout_id"]).set_result(now - _ended(body["sample"]))
        return web.json_response({})

    app = web.Application()
    app.router.add_post("/{kind}", receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield Honest(port, f"http://127.0.0.1:{runner.addresses[0][1]}", arrivals)
    finally:
        await runner.cleanup()


def rollout(name: str, seconds: float | None = _ROLLOUT_SEC) -> dict[str, object]:
    """A request for a rollout of that length, endless with ``None``."""
    return {
        "rollout_id": name,
        "initial_messages": [{"role": "user", "content": "x" * 500}],
        "label": "408",
        "chat_completions_url": "http://127.0.0.1:9/v1",
        "metadata": {"sec": seconds} if seconds is not None else {"for": "ever"},
    }


def _ended(sample: dict[str, list[dict[str, str]]]) -> float:
    return float(json.loads(sample["messages"][-1]["content"])["ended"])


def _check(holds: bool, what: str, status: int, answer: object) -> None:
    if not holds:
        raise RuntimeError(f"{what} was answered {status}: {str(answer)[:300]}")
