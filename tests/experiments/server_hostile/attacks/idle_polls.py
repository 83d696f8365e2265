"""Thousands of polls that wait for nothing."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.server_load.wire import Connection
from tests.experiments.server_hostile.attacks.base import Target, ask
from tests.experiments.server_hostile.honest import rollout

POLLS = 3000
_AT_ONCE = 16


@asynccontextmanager
async def idle_polls(target: Target) -> AsyncIterator[None]:
    """3,000 rollouts that never end, each with a poll open."""
    count = target.times(POLLS)
    # Results of an earlier round are kept: a poll of those would not wait.
    prefix = f"idle-{uuid.uuid4().hex}-"
    numbers = iter(range(count))
    polls: list[asyncio.Task[None]] = []

    async def admit() -> None:
        connection = Connection(target.port)
        for number in numbers:
            name = f"{prefix}{number}"
            _, answer = await connection.ask("POST", "/rollout", rollout(name, None))
            polls.append(asyncio.create_task(poll(name, answer["polling_lease_token"])))
        await connection.close()

    async def poll(name: str, token: str) -> None:
        connection = Connection(target.port)
        while True:
            status, _ = await connection.ask(
                "GET", f"/rollout/{name}/result", X_Osmosis_Rollout_Lease=token
            )
            target.answers[str(status)] += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(admit())
    try:
        yield
    finally:
        for task in polls:
            task.cancel()
        await asyncio.gather(*polls, return_exceptions=True)
        await ask(target, "/rollout/cancel", {"prefix": prefix})
