"""Agents that kill, leave things running, or print without end."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sandbox_images import BASE_IMAGE
from tests.harbor_backend.conftest import own_containers
from tests.harbor_backend.rollouts.acting import said, shell
from tests.harbor_backend.rollouts.conftest import MakeBackend, MakeTask, run

pytestmark = pytest.mark.docker

# The image's own program is the first process, so that root inside can kill the supervisor.
WITH_ENTRY_POINT = f"""FROM {BASE_IMAGE}
ENTRYPOINT ["/bin/sh", "-c", "exec \\"$@\\"", "sh"]
"""


async def test_an_agent_that_kills_its_supervisor_loses_the_sandbox(
    make_backend: MakeBackend, make_task: MakeTask, engine: Any
) -> None:
    task = make_task(dockerfile=WITH_ENTRY_POINT)
    backend = make_backend(agent="adversary:Act", tasks_dir=task)
    kill = "kill -9 $(pgrep -x osmosis-supervi); sleep 600"
    outcome = await asyncio.wait_for(run(backend, **shell(kill), grade=False), 60)
    assert outcome.result.err_category == "infrastructure_error", outcome.result
    assert "sandbox ended" in str(outcome.result.err_message)
    assert own_containers(engine) == []


async def test_an_agent_cannot_lose_its_sandbox_where_the_supervisor_is_first(
    make_backend: MakeBackend,
) -> None:
    backend = make_backend(agent="adversary:Act")
    kill = "for s in INT TERM HUP USR1 STOP SEGV KILL; do kill -$s 1; done; sleep 0.2; echo still"
    assert said(await run(backend, **shell(kill), grade=False)).endswith("still\n")


async def test_processes_left_behind_delay_nothing(make_backend: MakeBackend, engine: Any) -> None:
    backend = make_backend(agent="adversary:Act", grader="adversary:LookAround")
    command = "for i in 1 2 3; do setsid nohup sleep 1000 >/dev/null 2>&1 & done; echo left"
    outcome = await asyncio.wait_for(run(backend, **shell(command)), 60)
    assert outcome.result.sample is not None
    assert outcome.result.sample.reward == 1.0
    assert own_containers(engine) == []


async def test_a_flood_of_output_is_bounded(make_backend: MakeBackend, artifact_root: Path) -> None:
    command = "head -c 50000000 /dev/zero | tr '\\0' x > /proc/$PPID/fd/1; echo"
    backend = make_backend(agent="adversary:Act")
    # The runner's own descriptors are sealed, so the flood has to come through the workflow.
    outcome = await run(backend, **shell(command), grade=False)
    assert "ermission denied" in said(outcome)
    flood = shell("head -c 30000000 /dev/zero | tr '\\0' x")
    outcome = await run(backend, "r-2", **flood)
    assert outcome.result.err_category == "validation_error"
    assert "raise max_result_bytes=" in str(outcome.result.err_message)
    larger = make_backend(agent="adversary:Act", max_result_bytes=128 * 1024**2)
    assert len(said(await run(larger, "r-3", **flood))) == 30_000_000
    sizes = {path.name: path.stat().st_size for path in artifact_root.rglob("*") if path.is_file()}
    assert max(sizes.values()) < 9 * 1024 * 1024, sizes
