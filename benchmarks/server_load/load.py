"""One server under load, and what its callers measured."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.server_load.wire import Connection

_SCRIPT = Path(__file__).with_name("simulated_server.py")
_UP_SEC = 60.0
_ENDED = {"success", "failure", "cancelled"}


@dataclass(frozen=True)
class Load:
    """How much: rollouts in flight, submitted by so many at once, ending within ``seconds``."""

    rollouts: int
    submitters: int
    seconds: float


@dataclass
class Figures:
    """What one server did. Latencies are seconds, lags milliseconds."""

    admission_per_sec: float = 0.0
    admission: list[float] = field(default_factory=list)
    grading: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    lag_admitting: dict[str, float] = field(default_factory=dict)
    lag_idle: dict[str, float] = field(default_factory=dict)
    lag_ending: dict[str, float] = field(default_factory=dict)
    bytes_per_rollout: float = 0.0
    cpu_sec: float = 0.0
    failed: int = 0


class Child:
    """The server's process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def tell(self, line: str) -> dict[str, float]:
        """Send a command and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line.encode() + b"\n")
        answer: dict[str, float] = json.loads(await self._process.stdout.readline())
        return answer


@asynccontextmanager
async def serving(python: Path, port: int, load: Load, directory: Path) -> AsyncIterator[Child]:
    """A server under that interpreter, ended with the block."""
    process = await asyncio.create_subprocess_exec(
        *(str(python), str(_SCRIPT), str(port), str(load.seconds)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ
        | {
            "HOME": str(directory),
            "_OSMOSIS_ROLLOUT_ARTIFACT_ROOT": str(directory / "rollouts"),
            "PYTHONPATH": "",
        },
    )
    try:
        await _answering(port)
        yield Child(process)
    finally:
        process.kill()
        await process.wait()


async def measure(python: Path, port: int, load: Load, directory: Path) -> Figures:
    """Fill a server with rollouts, poll each, and let them end."""
    figures = Figures()
    async with serving(python, port, load, directory) as server:
        before = await server.tell("measure")
        callers = _Callers(port, figures)
        async with asyncio.TaskGroup() as group:
            began = time.monotonic()
            await callers.submit(load, group)
            figures.admission_per_sec = load.rollouts / (time.monotonic() - began)
            figures.lag_admitting = await server.tell("measure")
            await asyncio.sleep(min(load.seconds, 10))
            full = figures.lag_idle = await server.tell("measure")
            figures.bytes_per_rollout = (full["memory"] - before["memory"]) / load.rollouts
            await server.tell("go")
        figures.lag_ending = await server.tell("measure")
        figures.cpu_sec = figures.lag_ending["cpu"] - before["cpu"]
    return figures


class _Callers:
    def __init__(self, port: int, figures: Figures) -> None:
        self._port = port
        self._figures = figures

    async def submit(self, load: Load, polling: asyncio.TaskGroup) -> None:
        """Admit every rollout; each is polled from then on."""
        numbers = iter(range(load.rollouts))

        async def one_after_the_other() -> None:
            connection = Connection(self._port)
            for number in numbers:
                token = await self._admit(connection, f"load-{number}")
                if token is not None:
                    polling.create_task(self._poll(f"load-{number}", token))
            await connection.close()

        async with asyncio.TaskGroup() as group:
            for _ in range(load.submitters):
                group.create_task(one_after_the_other())

    async def _admit(self, connection: Connection, rollout_id: str) -> str | None:
        body = {
            "rollout_id": rollout_id,
            "initial_messages": [{"role": "user", "content": "x" * 200}],
            "label": "408",
            "grade": False,
            "chat_completions_url": "http://127.0.0.1:9/v1",
        }
        began = time.monotonic()
        status, answer = await connection.ask("POST", "/rollout", body)
        self._figures.admission.append(time.monotonic() - began)
        if status != 202:
            self._figures.failed += 1
            return None
        return str(answer["polling_lease_token"])

    async def _poll(self, rollout_id: str, token: str) -> None:
        connection = Connection(self._port)
        seen_grading: float | None = None
        while True:
            status, answer = await connection.ask(
                "GET", f"/rollout/{rollout_id}/result", X_Osmosis_Rollout_Lease=token
            )
            now = time.monotonic()
            if status != 200:
                self._figures.failed += 1
                break
            if answer["status"] == "grading" and seen_grading is None:
                seen_grading = now
            if answer["status"] in _ENDED:
                self._ended(answer, now, seen_grading)
                break
        await connection.close()

    def _ended(self, answer: dict[str, Any], now: float, seen_grading: float | None) -> None:
        if answer["status"] != "success":
            self._figures.failed += 1
            return
        times = json.loads(answer["sample"]["messages"][-1]["content"])
        self._figures.ended.append(now - times["ended"])
        if seen_grading is not None:
            self._figures.grading.append(seen_grading - times["grading"])


async def _answering(port: int) -> None:
    connection = Connection(port)
    async with asyncio.timeout(_UP_SEC):
        while True:
            try:
                await connection.ask("GET", "/health")
                break
            except OSError:
                await asyncio.sleep(0.05)
    await connection.close()


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which that share lies; 0 without values."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0
