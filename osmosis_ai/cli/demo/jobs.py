"""What the demo runs: jobs of rollouts, each on one backend."""

import asyncio
import importlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from osmosis_ai.cli.assets import tasks_dir, template_dir
from osmosis_ai.rollout import (
    ExecutionBackend,
    ExecutionOutcome,
    ExecutionRequest,
    LocalBackend,
)
from osmosis_ai.rollout.artifacts import artifact_root
from osmosis_ai.rollout.run import run_rollout

TEMPLATE = "multiply-harbor-strands"
POLICY = "embedded/multiply?wrong=0.25&seed=7"


@dataclass
class Job:
    """Rollouts on one backend. ``expected`` is the reward that all must have, if any."""

    title: str
    backend: ExecutionBackend
    requests: list[ExecutionRequest]
    policy: str | None = None
    expected: float | None = None
    outcomes: dict[str, ExecutionOutcome] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    elapsed: float = 0.0

    @property
    def rewards(self) -> list[float | None]:
        """The rewards in the order of the requests; ``None`` for a failure."""
        results = [self.outcomes[request.id].result for request in self.requests]
        return [
            result.sample.reward if result.status == "success" and result.sample else None
            for result in results
        ]

    def median(self, phase: str) -> float | None:
        """The median seconds of a phase, ``None`` where the backend has no such phase."""
        values = sorted(
            value
            for request in self.requests
            if (value := self._phase(request.id, phase)) is not None
        )
        return values[len(values) // 2] if values else None

    def _phase(self, rollout_id: str, phase: str) -> float | None:
        timings = self.outcomes[rollout_id].result.extra_fields.get("timings_sec")
        if timings is None:  # a backend without phases
            return self.seconds[rollout_id] if phase == "total" else None
        value = timings.get(phase)
        return None if value is None else float(value)


def multiply_requests(count: int, run: str, backend: str) -> list[ExecutionRequest]:
    """``count`` prompts that are the same on every backend, with ids of their own."""
    pairs = [(12 + 7 * i, 34 + 5 * i) for i in range(count)]
    return [
        ExecutionRequest(
            id=f"demo-{run}-{backend}-{i:03}",
            prompt=[{"role": "user", "content": f"What is {a} * {b}? Answer after ####."}],
            label=str(a * b),
            agent_timeout_sec=300,
            grader_timeout_sec=60,
        )
        for i, (a, b) in enumerate(pairs)
    ]


def local_job(count: int, run: str, n_concurrent: int) -> Job:
    """The multiply prompts in this process."""
    module = _template("multiply")
    config = module.multiply_config.model_copy(deep=True)
    config.concurrency.max_concurrent = n_concurrent
    backend = LocalBackend(
        workflow=module.MultiplyWorkflow,
        workflow_config=config,
        grader=_template("grader").MultiplyGrader,
    )
    return Job("LocalBackend", backend, multiply_requests(count, run, "local"), POLICY)


def harbor_jobs(count: int, run: str, n_concurrent: int) -> list[Job]:
    """The same prompts in sandboxes, then the dataset with a perfect and an idle agent."""
    from harbor.trial.queue import TrialQueue

    from harbor_backend import HarborBackend
    from harbor_backend.admin import find_tasks

    module = _template("multiply")
    queue = TrialQueue(n_concurrent=n_concurrent)
    template = HarborBackend(
        orchestrator=queue,
        tasks_dir=tasks_dir() / "multiply",
        agent=module.MultiplyWorkflow,
        workflow_config=module.multiply_config,
        grader=_template("grader").MultiplyGrader,
    )
    jobs = [Job("HarborBackend", template, multiply_requests(count, run, "harbor"), POLICY)]
    dataset = tasks_dir() / "dataset"
    for agent, expected in (("oracle", 1.0), ("nop", 0.0)):
        backend = HarborBackend(
            orchestrator=queue, tasks_dir=dataset, task_mode="dataset", agent=agent
        )
        requests = [
            ExecutionRequest(id=f"demo-{run}-{agent}-{task}", metadata={"harbor_task_id": task})
            for task in find_tasks(dataset)
        ]
        jobs.append(Job(f"dataset, {agent}", backend, requests, expected=expected))
    return jobs


async def run_job(job: Job, on_done: Callable[[Job], None]) -> None:
    """Run a job's rollouts at once, as far as its backend lets them, and save their files."""
    began = time.monotonic()
    try:
        async with asyncio.TaskGroup() as group:
            for request in job.requests:
                group.create_task(_run_one(job, request, on_done))
    finally:
        job.elapsed = time.monotonic() - began
        await job.backend.shutdown()


async def _run_one(job: Job, request: ExecutionRequest, on_done: Callable[[Job], None]) -> None:
    began = time.monotonic()
    finished = await run_rollout(job.backend, request, model=job.policy)
    job.seconds[request.id] = time.monotonic() - began
    job.outcomes[request.id] = finished.outcome
    await finished.save(artifact_root())
    on_done(job)


def saved_at(rollout_id: str) -> Path:
    """Where a rollout's files are."""
    return artifact_root() / rollout_id


def _template(module: str) -> Any:
    """Import a module of the template, as its own ``main.py`` would."""
    folder = str(template_dir(TEMPLATE))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(module)
