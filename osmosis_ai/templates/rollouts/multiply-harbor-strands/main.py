"""Serves the rollout: `python main.py`. TASK_DIR names the template task of its sandboxes.

SANDBOXES=skypilot runs them on SkyPilot instead of this machine's Docker; skypilot.yaml sets
that and the other variables.
"""

import os

import uvicorn
from grader import MultiplyGrader
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue
from multiply import MultiplyWorkflow, multiply_config

from osmosis_ai.rollout.backend.harbor import HarborBackend
from osmosis_ai.rollout.server import create_rollout_server

sandboxes = None
if os.environ.get("SANDBOXES") == "skypilot":
    registry = os.environ.get("SANDBOX_REGISTRY")
    sandboxes = EnvironmentConfig(
        type="skypilot", kwargs={"registry": registry} if registry else {}
    )

backend = HarborBackend(
    orchestrator=TrialQueue(n_concurrent=4),
    tasks_dir=os.environ.get("TASK_DIR", "tasks/multiply"),
    agent=MultiplyWorkflow,
    workflow_config=multiply_config,
    grader=MultiplyGrader,
    environment_config=sandboxes,
    agent_base_url=os.environ.get("AGENT_BASE_URL"),
)
app = create_rollout_server(
    backend=backend,
    lifespan=backend.prewarm_lifespan(),
    api_key=os.environ.get("OSMOSIS_ROLLOUT_API_KEY"),
)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("_OSMOSIS_ROLLOUT_PORT", "8000")))
