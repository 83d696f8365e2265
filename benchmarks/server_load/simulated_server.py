"""A rollout server with a backend that only waits. A script of its own, so that it runs under
any interpreter with the package ``osmosis_ai`` in it, ours or the vendor's.

    python simulated_server.py PORT SECONDS

Rollouts stay queued until a line "go" comes on standard input; from then on each goes on to
grading at a random time within SECONDS, and ends a little later. A sample's last message says
when: a JSON object with ``grading`` and ``ended``, by the monotonic clock that all processes
of the machine share. A line "measure" is answered with the event loop's lag since the last
one, in milliseconds, and the process's memory in bytes.
"""

import asyncio
import contextlib
import inspect
import json
import logging
import random
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import uvicorn

from osmosis_ai.rollout import (
    ExecutionBackend,
    ExecutionOutcome,
    ExecutionRequest,
    ExecutionResult,
    RolloutSample,
    RolloutStatus,
    get_rollout_context,
)
from osmosis_ai.rollout.server import create_rollout_server

_TICK_SEC = 0.005
_RUN_SEC = 2.0


class Simulated(ExecutionBackend):
    """Waits for "go", then for a random while, then ends."""

    def __init__(self, seconds: float) -> None:
        self.go = asyncio.Event()
        self._seconds = seconds
        self._statuses: dict[str, RolloutStatus] = {}

    def rollout_status(self, rollout_id: str) -> dict[str, Any] | None:
        """Where a rollout is, for a server that asks."""
        status = self._statuses.get(rollout_id)
        return None if status is None else {"status": status, "reward": None, "err_message": None}

    async def execute(self, request: ExecutionRequest, *_: Any, **__: Any) -> ExecutionOutcome:
        """Run nothing."""
        self._statuses[request.id] = RolloutStatus.QUEUED
        await self.go.wait()
        await asyncio.sleep(random.uniform(0, self._seconds))
        grading = time.monotonic()
        self._statuses[request.id] = RolloutStatus.GRADING
        context = get_rollout_context()
        if context is not None and context.progress is not None:
            changing: Any = context.progress.set_status(RolloutStatus.GRADING)  # type: ignore[func-returns-value]
            if inspect.isawaitable(changing):  # the vendor's
                await changing
        await asyncio.sleep(_RUN_SEC)
        self._statuses.pop(request.id)
        times = {"grading": grading, "ended": time.monotonic()}
        answer = {"role": "assistant", "content": json.dumps(times)}
        sample = RolloutSample(messages=[*request.prompt, answer], reward=1.0)
        result = ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample)
        return ExecutionOutcome(workflow=result)


class Lag:
    """How late the event loop runs a timer."""

    def __init__(self) -> None:
        self._lags: list[float] = []

    async def watch(self) -> None:
        """Measure for ever."""
        while True:
            due = time.perf_counter() + _TICK_SEC
            await asyncio.sleep(_TICK_SEC)
            self._lags.append(time.perf_counter() - due)

    def take(self) -> dict[str, float]:
        """Percentiles since the last time, in milliseconds."""
        lags, self._lags = sorted(self._lags) or [0.0], []
        return {
            "p50": lags[len(lags) // 2] * 1000,
            "p99": lags[int(len(lags) * 0.99)] * 1000,
            "max": lags[-1] * 1000,
        }


def memory() -> int:
    """Resident bytes."""
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096


async def commands(backend: Simulated, lag: Lag) -> None:
    """Do as standard input says."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := (await reader.readline()).strip():
        if line == b"go":
            backend.go.set()
            answer: dict[str, float] = {}
        else:
            answer = {**lag.take(), "memory": memory(), "cpu": time.process_time()}
        print(json.dumps(answer), flush=True)


def main() -> None:
    """Serve until killed."""
    logging.basicConfig(level=logging.WARNING)
    port, seconds = int(sys.argv[1]), float(sys.argv[2])
    backend, lag = Simulated(seconds), Lag()

    @contextlib.asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(lag.watch()), asyncio.create_task(commands(backend, lag))]
        yield
        for task in tasks:
            task.cancel()

    create: Callable[..., Any] = create_rollout_server
    app = create(backend=backend, lifespan=lifespan, api_key="benchmark")
    uvicorn.run(
        app, host="127.0.0.1", port=port, backlog=8192, log_level="warning", access_log=False
    )


if __name__ == "__main__":
    main()
