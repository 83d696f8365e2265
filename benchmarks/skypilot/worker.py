"""An engine process of the fault run: does rollouts until none is left, or until it is killed.

    python -m benchmarks.skypilot.worker REGISTRY TASK JOURNAL ROLLOUTS AT_ONCE

The journal stands for the store: a line is on disk before its rollout counts as done.
"""

import asyncio
import json
import logging
import os
import sys
from pathlib import Path

from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from benchmarks.skypilot.plan import DEADLINE_SEC, hit_of, rollout_id
from harbor_backend import HarborBackend
from harbor_backend.places.instance import instance_id
from harbor_backend.places.skypilot.names import rollout_part
from osmosis_ai.rollout import ExecutionOutcome, ExecutionRequest


def done(journal: Path) -> dict[str, dict[str, object]]:
    """Results by rollout; a last line that a killed process did not finish is none."""
    found: dict[str, dict[str, object]] = {}
    for line in journal.read_text().splitlines() if journal.exists() else []:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record["id"] in found:
            raise RuntimeError(f"{record['id']} has two results")
        found[record["id"]] = record
    return found


def _record(identifier: str, outcome: ExecutionOutcome) -> dict[str, object]:
    result = outcome.result
    fields = result.extra_fields
    return {
        "id": identifier,
        "instance": instance_id(),
        "status": result.status.value,
        "category": None if result.err_category is None else result.err_category.value,
        "phase": fields.get("phase"),
        "reward": None if result.sample is None else result.sample.reward,
        "message": (result.err_message or "")[:300],
        "notes": fields.get("notes", []),
        "timings_sec": fields.get("timings_sec", {}),
    }


async def work(registry: str, task: str, journal: Path, rollouts: int, at_once: int) -> None:
    """Run what has no result yet."""
    import noop
    from sky_sandbox_double import faults

    finished = done(journal)
    with journal.open("ab") as file:
        file.write(b"\n")  # ends a line that a killed process left open
    backend = HarborBackend(
        orchestrator=TrialQueue(n_concurrent=at_once),
        tasks_dir=task,
        agent=noop.NoopWorkflow,
        grader=noop.NoopGrader,
        grader_sandbox="shared",
        environment_config=EnvironmentConfig(type="skypilot", kwargs={"registry": registry}),
    )
    await backend.prewarm()
    slots = asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        async with slots:
            identifier = rollout_id(number)
            if (hit := hit_of(number)) is not None:
                faults.inject(
                    faults.Rule(
                        faults.Fault(hit.fault), name=rollout_part(identifier),
                        command=hit.command, times=hit.times, seconds=hit.seconds,
                    )
                )  # fmt: skip
            prompt = [{"role": "user", "content": "Do nothing."}]
            outcome = await backend.execute(
                ExecutionRequest(
                    id=identifier, prompt=prompt, label="done", agent_timeout_sec=DEADLINE_SEC
                )
            )
            with journal.open("ab") as file:
                file.write(json.dumps(_record(identifier, outcome)).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())

    async with asyncio.TaskGroup() as group:
        for number in range(rollouts):
            if rollout_id(number) not in finished:
                group.create_task(one(number))
    await backend.shutdown()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(
        work(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
    )
