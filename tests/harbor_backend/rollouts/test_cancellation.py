"""Rollouts that are cancelled while they start or are graded."""

import asyncio
from typing import Any

import pytest

from tests.harbor_backend.conftest import own_containers
from tests.harbor_backend.rollouts.conftest import MakeBackend, MakeTask, run, until

pytestmark = pytest.mark.docker


async def test_cancelling_while_grading(
    make_backend: MakeBackend, make_task: MakeTask, engine: Any
) -> None:
    backend = make_backend(agent="nop", tasks_dir=make_task(tests="sleep 600"))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(run(backend))
        await until(lambda: (backend.rollout_status("r-1") or {}).get("status") == "grading")
        await backend.cancel_rollouts(prefix="r-")
    assert running.result().result.status == "cancelled"
    assert own_containers(engine) == []


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.2, 0.6])
async def test_cancelling_while_starting(
    make_backend: MakeBackend, engine: Any, delay: float
) -> None:
    backend = make_backend(agent="adversary:Wait", grader="adversary:LookAround")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(run(backend))
        await until(lambda: backend.health()["running"])
        await asyncio.sleep(delay)
        await backend.cancel_rollouts(all=True)
    assert running.result().result.status == "cancelled"
    assert own_containers(engine) == []
