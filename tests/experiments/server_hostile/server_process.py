"""The server under attack: real SQLite store, a key, a backend whose rollouts only wait.

    python -m tests.experiments.server_hostile.server_process

A rollout waits ``metadata.sec`` seconds, for ever without. Its last message says when it ended,
by the monotonic clock that all processes of the machine share.
"""

import asyncio
import contextlib
import json
import logging
import os
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import uvicorn

from benchmarks.model_path.lag import LoopLag
from benchmarks.model_path.process import announce, say
from osmosis_ai.rollout import (
    ExecutionBackend,
    ExecutionOutcome,
    ExecutionRequest,
    ExecutionResult,
    RolloutSample,
    RolloutStatus,
)
from osmosis_ai.rollout.server import create_rollout_server

API_KEY = "benchmark"


class Waiting(ExecutionBackend):
    """Runs any number of rollouts, which cost nothing."""

    async def execute(self, request: ExecutionRequest, *args: Any, **kw: Any) -> ExecutionOutcome:
        seconds = (request.metadata or {}).get("sec")
        if seconds is None:
            await asyncio.Event().wait()
        await asyncio.sleep(float(seconds or 0))
        answer = {"role": "assistant", "content": json.dumps({"ended": time.monotonic()})}
        sample = RolloutSample(
            messages=[*request.prompt, answer], reward=1.0, trajectory_messages=None
        )
        result = ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample)
        return ExecutionOutcome(workflow=result, grader=result if request.grade else None)


async def serve() -> None:
    """Serve until standard input ends; every line asks for the loop's lag."""
    lag = LoopLag()
    # Of this protocol by name, or asyncio would not turn Nagle's algorithm off: 40 ms an answer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(8192)

    @contextlib.asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(lag.watch())
            yield
            watching.cancel()

    app = create_rollout_server(backend=Waiting(), lifespan=lifespan, api_key=API_KEY)
    config = uvicorn.Config(app, log_level="error", access_log=False, backlog=8192)
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listener]))
        async for _ in announce({"port": listener.getsockname()[1]}):
            say(lag.take())
        os._exit(0)  # what is left to do interests nobody


if __name__ == "__main__":
    logging.basicConfig(level=logging.CRITICAL)
    asyncio.run(serve())
