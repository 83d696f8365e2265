"""A rollout's whole entry point imports where neither Harbor nor a server is installed."""

import pytest

from osmosis_ai.rollout import RolloutStatus
from tests.rollout.container.sandbox_process import Ended, Sandbox

HIDE = """
from importlib.machinery import PathFinder

HIDDEN = ("harbor", "harbor_backend", "fastapi", "starlette", "uvicorn", "aiohttp",
          "osmosis_ai.gateway", "osmosis_ai.rollout.server")


class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if any(name == hidden or name.startswith(hidden + ".") for hidden in HIDDEN):
            return None
        return PathFinder.find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Without
for hidden in HIDDEN[:-2]:
    try:
        __import__(hidden)
    except ModuleNotFoundError:
        continue
    raise AssertionError(hidden)
"""

ENTRY_POINT = """
import os
from contextlib import asynccontextmanager

import uvicorn
from fastapi import Depends, FastAPI
from fastapi.responses import JSONResponse
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowConfig, Grader, LocalBackend
from osmosis_ai.rollout.backend.harbor import HarborBackend, TaskMode
from osmosis_ai.rollout.server import create_rollout_server


class Workflow(AgentWorkflow[AgentWorkflowConfig]):
    async def run(self, ctx):
        return [*ctx.prompt, {"role": "assistant", "content": "done"}]


class MyGrader(Grader):
    async def grade(self, ctx):
        ctx.set_reward(1.0)


workflow_config = AgentWorkflowConfig(name="w")
environment: EnvironmentConfig | None = EnvironmentConfig(type="docker", kwargs={"a": 1})
backend = HarborBackend(
    orchestrator=TrialQueue(n_concurrent=2),
    tasks_dir="tasks/multiply",
    agent=Workflow,
    grader=MyGrader,
    workflow_config=workflow_config,
    task_mode=TaskMode.TEMPLATE,
    environment_config=environment,
)
local = LocalBackend(workflow=Workflow, workflow_config=workflow_config)
app = create_rollout_server(backend=backend, lifespan=backend.prewarm_lifespan)
{more}

if __name__ == "__main__":
    uvicorn.run(app, host="0.0.0.0", port=int(os.environ.get("_OSMOSIS_ROLLOUT_PORT", 8000)))
"""


def run(sandbox: Sandbox, more: str = "") -> Ended:
    sandbox.prelude = HIDE
    sandbox.write(ENTRY_POINT.replace("{more}", more))
    prompt = [{"role": "user", "content": "hi"}]
    return sandbox.run("agent", workflow="main:Workflow", prompt=prompt)


def test_an_entry_point(sandbox: Sandbox) -> None:
    ended = run(sandbox)
    assert ended.result.status is RolloutStatus.SUCCESS, ended.result.err_message
    assert ended.result.sample is not None
    assert ended.result.sample.messages[-1]["content"] == "done"


@pytest.mark.parametrize(
    "more",
    [
        "assert TaskMode.TEMPLATE == TaskMode.TEMPLATE != TaskMode.DATASET",
        "assert TaskMode is __import__('harbor_backend').TaskMode",
        "MODES = {TaskMode.TEMPLATE: 'template', TaskMode('dataset'): 'dataset'}",
        "def typed(queue: TrialQueue, mode: TaskMode | None = None) -> list[TaskMode]: ...",
        "@app.get('/more')\ndef more():\n    return 7\nassert more() == 7",
        "@app.middleware\ndef more():\n    return 7\nassert more() == 7",
        "@uvicorn.wrap\nclass More:\n    x = 7\nassert More().x == 7",
        "app.add_middleware(Workflow)\napp.state.flag = True\nassert app.state.flag",
        "class Mine(EnvironmentConfig):\n"
        "    def __init__(self, n):\n        super().__init__(n=n)\n        self.n = n\n"
        "    def double(self):\n        return 2 * self.n\n"
        "assert Mine(4).double() == 8 and Mine(4).anything() is not None",
        "from abc import ABC, abstractmethod\n"
        "class Mine(TrialQueue, ABC):\n    @abstractmethod\n    def go(self): ...\n"
        "try:\n    Mine()\nexcept TypeError:\n    pass\nelse:\n    raise AssertionError",
        "class Mine(EnvironmentConfig, table=True):\n    pass",
        "class Mine(uvicorn.Config[int]):\n    pass\nassert isinstance(Mine(), uvicorn.Config)",
        "class WithField(AgentWorkflowConfig):\n    name: str = 'f'\n"
        "    environment: EnvironmentConfig = EnvironmentConfig(type='docker')\n"
        "WithField().model_copy(deep=True)",
        "import harbor.environments.docker.docker as deep\nfrom harbor import trial\n"
        "trial.hooks.TrialEvent.START.value",
        "@asynccontextmanager\nasync def lifespan(app: FastAPI):\n"
        "    async with backend.prewarm_lifespan(app):\n        yield\n"
        "app = create_rollout_server(backend=local, lifespan=lifespan)",
        "import copy, pickle\ncopy.deepcopy(backend), copy.copy(environment), repr(app)",
        "assert not hasattr(backend, '__fspath__') and not hasattr(TaskMode, '_fields')",
    ],
)
def test_uses_of_what_is_not_there(sandbox: Sandbox, more: str) -> None:
    ended = run(sandbox, more)
    assert ended.result.status is RolloutStatus.SUCCESS, ended.result.err_message


def test_other_missing_modules_stay_missing(sandbox: Sandbox) -> None:
    ended = run(sandbox, "import fastapi_of_mine")
    assert ended.result.status is RolloutStatus.FAILURE
    assert "No module named 'fastapi_of_mine'" in (ended.result.err_message or "")


def test_what_is_installed_is_not_replaced(sandbox: Sandbox) -> None:
    sandbox.write("__version__ = 'of the project'\n", "uvicorn.py")
    sandbox.prelude = HIDE.replace('"uvicorn", ', "").replace("HIDDEN[:-2]", "HIDDEN[:2]")
    sandbox.write(
        "import uvicorn\nfrom osmosis_ai.rollout import AgentWorkflow\n"
        "class Workflow(AgentWorkflow):\n    async def run(self, ctx):\n"
        "        return [{'version': uvicorn.__version__}]\n"
    )
    ended = sandbox.run("agent", workflow="main:Workflow", prompt=[])
    assert ended.result.sample is not None, ended.result.err_message
    assert ended.result.sample.messages == [{"version": "of the project"}]
