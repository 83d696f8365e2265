"""The server that is killed.

    python -m tests.experiments.server_kill.server_process PORT local|harbor DIRECTORY

Every run of a rollout is noted in ``DIRECTORY/runs/<id>``, one byte each.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import uvicorn

from local_backend import LocalBackend
from osmosis_ai.rollout.backend.base import ExecutionBackend
from osmosis_ai.rollout.server import create_rollout_server
from osmosis_ai.rollout.types.config import AgentWorkflowConfig, ConcurrencyConfig
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionRequest

ROOT = Path(__file__).parents[3]
API_KEY = "the-key-of-the-kill-test"
AT_ONCE = 8
_BIND_SEC = 10.0


def noted[B: ExecutionBackend](backend: B, runs: Path) -> B:
    """The backend, which notes on disk that it was asked to run something."""
    execute = backend.execute

    async def noting(request: ExecutionRequest, *args: Any, **kwargs: Any) -> ExecutionOutcome:
        with (runs / request.id).open("ab") as file:
            file.write(b".")
        return await execute(request, *args, **kwargs)

    backend.execute = noting  # type: ignore[method-assign]
    return backend


def local() -> ExecutionBackend:
    """Short rollouts in this process."""
    config = AgentWorkflowConfig(
        name="short", concurrency=ConcurrencyConfig(max_concurrent=AT_ONCE)
    )
    return LocalBackend(
        workflow="short:ShortWorkflow", grader="short:ShortGrader", workflow_config=config
    )


def harbor() -> ExecutionBackend:
    """The same in sandboxes."""
    from harbor.trial.queue import TrialQueue

    from harbor_backend import HarborBackend

    return HarborBackend(
        orchestrator=TrialQueue(n_concurrent=4),
        tasks_dir=ROOT / "tasks" / "multiply",
        agent="short:ShortWorkflow",
        grader="short:ShortGrader",
    )


def main() -> None:
    """Serve until killed."""
    port, kind, directory = sys.argv[1:]
    sys.path.insert(0, str(ROOT / "tests" / "projects" / "short"))
    runs = Path(directory, "runs")
    runs.mkdir(exist_ok=True)
    backend = noted(harbor() if kind == "harbor" else local(), runs)
    app = create_rollout_server(
        backend=backend,
        api_key=API_KEY,
        result_wait_timeout_sec=5,
        polling_lease_timeout_sec=60,
        result_retention_sec=36_000,
    )
    config = uvicorn.Config(
        app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False
    )
    # The port of a process that was just killed may be busy for a moment.
    until = time.monotonic() + _BIND_SEC
    while True:
        try:
            listener = config.bind_socket()
            break
        except SystemExit:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    os.setpgrp()
    main()
