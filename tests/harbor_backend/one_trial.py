"""An engine process that runs one task with the oracle: ``TASKS_DIR TASK [docker]``."""

import asyncio
import sys

from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from harbor_backend.places.instance import instance_id
from osmosis_ai.rollout import ExecutionRequest


async def main(tasks_dir: str, task: str, harbor: bool) -> None:
    print(instance_id(), flush=True)
    backend = HarborBackend(
        orchestrator=TrialQueue(n_concurrent=1),
        tasks_dir=tasks_dir,
        task_mode="dataset",
        agent="oracle",
        environment_config=EnvironmentConfig(type=EnvironmentType.DOCKER) if harbor else None,
    )
    request = ExecutionRequest(id=f"reaper-{task}", metadata={"harbor_task_id": task})
    outcome = await backend.execute(request)
    await backend.shutdown()
    print(outcome.model_dump_json())


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:] == ["docker"]))
