"""An engine process that runs one rollout that never ends: ``TASK_DIR ENVIRONMENT_JSON``."""

import asyncio
import json
import sys

from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from harbor_backend.places.instance import instance_id
from harbor_backend.program.bundle import EntryPoints, build_bundle
from harbor_backend.program.runtime import build_runtime
from osmosis_ai.rollout import ExecutionRequest
from tests.harbor_backend.rollouts.conftest import PROJECT


async def main(task: str, environment: str) -> None:
    """Print the instance id, and run."""
    print(instance_id(), flush=True)
    backend = HarborBackend(
        orchestrator=TrialQueue(n_concurrent=1),
        tasks_dir=task,
        agent="adversary:Wait",
        environment_config=EnvironmentConfig(**json.loads(environment)),
    )
    prompt = [{"role": "user", "content": "wait"}]
    # The tests' own, which is in the registry: see ``shared_runtime``.
    bundle = build_bundle(PROJECT, entry_points=EntryPoints(agent="adversary:Answer"))
    with build_runtime(bundle) as backend._program._runtime:
        await backend.execute(ExecutionRequest(id="killed", prompt=prompt))


asyncio.run(main(sys.argv[1], sys.argv[2]))
