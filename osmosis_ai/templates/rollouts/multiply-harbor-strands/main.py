"""Serves the rollout: `python main.py`. TASK_DIR names the template task of its sandboxes."""

import os

import uvicorn
from grader import MultiplyGrader
from harbor.trial.queue import TrialQueue
from multiply import MultiplyWorkflow, multiply_config

from osmosis_ai.rollout.backend.harbor import HarborBackend
from osmosis_ai.rollout.server import create_rollout_server

backend = HarborBackend(
    orchestrator=TrialQueue(n_concurrent=4),
    tasks_dir=os.environ.get("TASK_DIR", "tasks/multiply"),
    agent=MultiplyWorkflow,
    workflow_config=multiply_config,
    grader=MultiplyGrader,
)
app = create_rollout_server(backend=backend, lifespan=backend.prewarm_lifespan())

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("_OSMOSIS_ROLLOUT_PORT", "8000")))
