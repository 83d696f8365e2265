"""Rollouts that end badly, and what is left of them."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harbor_backend.trial import phase as phases
from osmosis_ai.rollout import ExecutionRequest
from osmosis_ai.rollout.backend.registry import BackendClosedError, DuplicateRolloutError
from tests.harbor_backend.conftest import channel_dirs, own_containers
from tests.harbor_backend.rollouts.conftest import DATASET, MakeBackend, MakeTask, run, until

pytestmark = pytest.mark.docker


async def test_a_process_that_exits_leaves_its_code_and_words(make_backend: MakeBackend) -> None:
    outcome = await run(make_backend(agent="adversary:Exit", grader="adversary:LookAround"))
    assert outcome.result.err_category == "agent_error"
    assert "exit code 7" in str(outcome.result.err_message)
    assert outcome.grader is None


async def test_a_blocked_loop_is_ended_after_the_grace_period(
    make_backend: MakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phases, "GRACE_SEC", 1.0)
    outcome = await run(make_backend(agent="adversary:Hang"), agent_timeout_sec=1)
    assert outcome.result.err_category == "timeout"
    assert str(outcome.result.err_message).startswith("Workflow exceeded its 1s deadline")


async def test_out_of_memory_is_said(make_backend: MakeBackend, make_task: MakeTask) -> None:
    task = make_task(toml="[environment]\nmemory_mb = 256\n")
    outcome = await run(make_backend(agent="adversary:Eat", tasks_dir=task))
    assert outcome.result.err_category == "agent_error"
    assert "137" in str(outcome.result.err_message)


async def test_an_expired_deadline_starts_no_sandbox(make_backend: MakeBackend) -> None:
    outcome = await run(make_backend(agent="adversary:Wait"), agent_timeout_sec=0)
    assert outcome.result.err_message == "Workflow exceeded its 0s deadline"
    assert outcome.result.extra_fields == {}


async def test_cancelling_running_and_queued(make_backend: MakeBackend, engine: Any) -> None:
    backend = make_backend(n_concurrent=1, agent="adversary:Wait")
    async with asyncio.TaskGroup() as group:
        first = group.create_task(run(backend, "first"))
        await until(lambda: own_containers(engine))
        second = group.create_task(run(backend, "second"))
        await until(lambda: backend.rollout_status("second"))
        assert backend.health()["in_flight"] == 2
        found = await backend.cancel_rollouts(ids=["first", "second", "third"])
    assert found == {
        "first": "cancelled_running",
        "second": "cancelled_queued",
        "third": "not_found",
    }
    assert {first.result().result.status, second.result().result.status} == {"cancelled"}
    assert own_containers(engine) == []
    assert backend.rollout_status("first") is not None


async def test_cancellation_from_outside_is_raised(make_backend: MakeBackend, engine: Any) -> None:
    backend = make_backend(agent="adversary:Wait")
    task = asyncio.create_task(run(backend))
    await until(lambda: own_containers(engine))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert own_containers(engine) == []


async def test_ids_and_the_end_of_a_backend(make_backend: MakeBackend) -> None:
    backend = make_backend(agent="adversary:Wait")
    running = asyncio.create_task(run(backend, "same"))
    await until(lambda: backend.rollout_status("same"))
    with pytest.raises(DuplicateRolloutError, match="'same' is already in flight"):
        await run(backend, "same")
    with pytest.raises(ValueError, match="single path segment"):
        ExecutionRequest(id="a/b")
    await backend.shutdown()
    assert (await running).result.status == "cancelled"
    with pytest.raises(BackendClosedError):
        await run(backend)


async def test_capacity(make_backend: MakeBackend) -> None:
    backend = make_backend(n_concurrent=1, agent="adversary:Wait", max_queue_depth=1)
    assert backend.has_capacity()
    async with asyncio.TaskGroup() as group:
        group.create_task(run(backend, "running"))
        await until(lambda: backend.health()["running"] == 1)
        assert backend.has_capacity()
        group.create_task(run(backend, "waiting"))
        await until(lambda: not backend.has_capacity())
        await backend.cancel_rollouts(all=True)


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        (None, "harbor_task_id"),
        ({"harbor_task_id": "../multiply"}, "leaves tasks_dir"),
        ({"harbor_task_id": "no-such-task"}, "names no directory"),
        ({"harbor_task_id": 7}, "non-empty string"),
        ({"harbor_task": "./no-such-directory"}, "does not exist"),
        ({"harbor_task": "plain-name"}, "neither a path"),
    ],
)
async def test_tasks_that_cannot_be_found(
    make_backend: MakeBackend, metadata: dict[str, Any] | None, text: str
) -> None:
    backend = make_backend(agent="oracle", tasks_dir=DATASET, task_mode="dataset")
    outcome = await run(backend, metadata=metadata)
    assert outcome.result.err_category == "validation_error"
    assert text in str(outcome.result.err_message)


async def test_tasks_that_cannot_be_run(make_backend: MakeBackend, make_task: MakeTask) -> None:
    made = {
        "broken-toml": (make_task("broken-toml", toml="= ="), "is not valid"),
        "no-instruction": (make_task("no-instruction", instruction=None), "no instruction.md"),
        "no-build": (
            make_task("no-build", dockerfile="FROM python:3.12-slim\nRUN echo sorry && false\n"),
            "sorry",
        ),
    }
    folder = next(iter(made.values()))[0].parent
    backend = make_backend(agent="oracle", tasks_dir=folder, task_mode="dataset")
    for name, (_, text) in made.items():
        outcome = await run(backend, name, metadata={"harbor_task_id": name})
        assert outcome.result.err_category == "validation_error", outcome.result
        assert text in str(outcome.result.err_message)


def test_no_engine_is_said_with_a_remedy(artifact_root: Path) -> None:
    """In a process of its own: the engine's address is read once."""
    program = Path(__file__).parents[1] / "one_trial.py"
    done = subprocess.run(
        [sys.executable, str(program), str(DATASET), "log-report"],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[3]),
            "DOCKER_HOST": "unix:///nonexistent/docker.sock",
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "infrastructure_error" in done.stdout
    assert "does not answer" in done.stdout
    assert "DOCKER_HOST" in done.stdout


async def test_nothing_is_left(make_backend: MakeBackend, engine: Any) -> None:
    before = channel_dirs()
    backend = make_backend(agent="adversary:Exit")
    await run(backend)
    await backend.shutdown()
    assert channel_dirs() <= before
    assert own_containers(engine) == []
    assert not backend._work_dir.exists()
