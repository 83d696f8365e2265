"""The Python blocks of the public documentation, run as they stand there."""

import importlib.util
import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from osmosis_ai.rollout import (
    AgentWorkflow,
    ExecutionOutcome,
    ExecutionRequest,
    LocalBackend,
    RolloutContext,
    RolloutErrorCategory,
    RolloutStatus,
)
from tests.rollout.policy import Policy
from tests.rollout.server.serving import serve

BASE_CLASS = """
from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowContext


class MyWorkflow(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> None:
        # Build and run your agent here.
        pass
"""

SDK_SHAPE = """
class AgentWorkflow[TConfig: AgentWorkflowConfig](ABC):
    def __init__(self, config: TConfig | None = None):
        self.config = config

    @abstractmethod
    async def run(
        self, ctx: AgentWorkflowContext[TConfig]
    ) -> AgentWorkflowOutput | list[dict[str, Any]] | None:
        raise NotImplementedError
"""

EXPLICIT_OUTPUT = """
from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowContext,
    AgentWorkflowOutput,
)


class ExplicitWorkflow(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> AgentWorkflowOutput:
        messages = [*ctx.prompt, {"role": "assistant", "content": "done"}]
        return AgentWorkflowOutput(
            messages=messages,
            metrics={"steps": 1.0},
        )
"""

ARTIFACTS = r"""
from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowContext


class TracingWorkflow(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> None:
        if ctx.artifacts_dir:
            (ctx.artifacts_dir / "run.log").write_text("started\n")
        ...
"""

STRANDS = """
from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowContext
from osmosis_ai.rollout.integrations.agents.strands import (
    OsmosisRolloutModel,
    OsmosisStrandsAgent,
)


class SimpleStrandsWorkflow(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> None:
        agent = OsmosisStrandsAgent(
            name="simple-strands-agent",
            model=OsmosisRolloutModel(params={"temperature": 1.0}),
            messages=ctx.prompt,
            callback_handler=None,
        )
        await agent.invoke_async()
"""

OPENAI_AGENTS = """
from agents import ModelSettings, Runner

from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowContext
from osmosis_ai.rollout.integrations.agents.openai_agents import (
    OsmosisAgent,
    OsmosisMemorySession,
    OsmosisRolloutModel,
)


class SimpleOpenAIWorkflow(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> None:
        agent = OsmosisAgent(
            name="simple-openai-agent",
            instructions="Answer the user's request clearly.",
            model=OsmosisRolloutModel(),
            model_settings=ModelSettings(temperature=1.0, max_tokens=4096),
        )
        session = OsmosisMemorySession()
        await Runner.run(
            agent,
            ctx.prompt,
            session=session,
        )
"""

CUSTOM_CONFIG = """
from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    ConcurrencyConfig,
)


class SearchWorkflowConfig(AgentWorkflowConfig):
    name: str = "search-workflow"
    max_iterations: int = 8
    temperature: float = 1.0
    concurrency: ConcurrencyConfig = ConcurrencyConfig(max_concurrent=4)


class SearchWorkflow(AgentWorkflow[SearchWorkflowConfig]):
    async def run(self, ctx: AgentWorkflowContext[SearchWorkflowConfig]) -> None:
        config = ctx.config or SearchWorkflowConfig()
        max_iterations = config.max_iterations
        temperature = config.temperature
        # Use these values when constructing your agent.


search_workflow_config = SearchWorkflowConfig()
"""

TOOL_WORKFLOW = '''
from typing import Any

from strands import tool

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
)
from osmosis_ai.rollout.integrations.agents.strands import (
    OsmosisRolloutModel,
    OsmosisStrandsAgent,
)


@tool(name="search")
def search_tool(query: str) -> str:
    """Search for information."""
    return f"results for {query}"


class ToolWorkflowConfig(AgentWorkflowConfig):
    name: str = "tool-workflow"
    model: Any = OsmosisRolloutModel(params={"temperature": 1.0})
    tools: Any = [search_tool]
    max_iterations: int = 8


tool_workflow_config = ToolWorkflowConfig()


class ToolWorkflow(AgentWorkflow[ToolWorkflowConfig]):
    async def run(self, ctx: AgentWorkflowContext[ToolWorkflowConfig]) -> None:
        config = ctx.config or ToolWorkflowConfig()
        agent = OsmosisStrandsAgent(
            name="search-agent",
            model=config.model,
            tools=config.tools,
            messages=ctx.prompt,
            callback_handler=None,
        )

        for _ in range(config.max_iterations):
            result = await agent.invoke_async()
            content = result.message.get("content", [])
            if not any("toolUse" in block for block in content):
                break
'''

WIRING = """
from osmosis_ai.rollout import LocalBackend
from osmosis_ai.rollout.server import create_rollout_server

backend = LocalBackend(
    workflow=SearchWorkflow,
    workflow_config=search_workflow_config,
)
app = create_rollout_server(backend=backend)
"""

PROMPT = [
    {"role": "system", "content": "Search before you answer."},
    {"role": "user", "content": "What is ATIF?"},
]


@pytest.fixture
def load(tmp_path: Path, artifact_root: Path) -> Any:
    """Import a block as the ``main.py`` of a rollout."""

    def load_block(source: str) -> ModuleType:
        path = tmp_path / "main.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location("main", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load_block


async def execute(backend: LocalBackend, policy: Policy | None = None) -> ExecutionOutcome:
    """Run one ungraded rollout, with a policy to call when one is given."""
    request = ExecutionRequest(id="r-1", prompt=PROMPT, grade=False)
    url = policy.url if policy else ""
    with RolloutContext(chat_completions_url=url, api_key="k", rollout_id="r-1"):
        return await backend.execute(request)


async def test_base_class(load: Any) -> None:
    outcome = await execute(LocalBackend(workflow=load(BASE_CLASS).MyWorkflow))
    assert outcome.workflow.sample is None
    assert outcome.workflow.err_category is RolloutErrorCategory.VALIDATION_ERROR
    assert "no sample" in (outcome.workflow.err_message or "")


def test_sdk_shape(load: Any) -> None:
    names = (
        "from abc import ABC, abstractmethod\nfrom typing import Any\n"
        "from osmosis_ai.rollout import AgentWorkflowConfig, AgentWorkflowContext, "
        "AgentWorkflowOutput\n"
    )
    shown = load(names + SDK_SHAPE).AgentWorkflow
    for method in ("__init__", "run"):
        documented = inspect.signature(getattr(shown, method)).parameters
        actual = inspect.signature(getattr(AgentWorkflow, method)).parameters
        assert list(actual) == list(documented)
    assert AgentWorkflow.__abstractmethods__ == shown.__abstractmethods__
    assert len(AgentWorkflow.__type_params__) == len(shown.__type_params__)


async def test_explicit_output(load: Any) -> None:
    outcome = await execute(LocalBackend(workflow=load(EXPLICIT_OUTPUT).ExplicitWorkflow))
    sample = outcome.result.sample
    assert outcome.result.status is RolloutStatus.SUCCESS
    assert sample is not None
    assert sample.messages == [*PROMPT, {"role": "assistant", "content": "done"}]
    assert sample.trajectory_messages == sample.messages
    assert sample.metrics == {"steps": 1.0}


async def test_artifacts(load: Any, artifact_root: Path) -> None:
    await execute(LocalBackend(workflow=load(ARTIFACTS).TracingWorkflow))
    assert (artifact_root / "r-1" / "artifacts" / "run.log").read_text() == "started\n"


async def test_strands(load: Any, policy: Policy) -> None:
    workflow = load(STRANDS).SimpleStrandsWorkflow
    outcome = await execute(LocalBackend(workflow=workflow), policy)
    assert outcome.result.status is RolloutStatus.SUCCESS, outcome.result.err_message
    assert outcome.result.sample is not None
    assert [m["content"] for m in outcome.result.sample.messages] == [
        [{"text": "What is ATIF?"}],
        [{"text": "answer to user"}],
    ]
    (request,) = policy.requests
    assert request["temperature"] == 1.0
    assert request["messages"][0] == {"role": "system", "content": "Search before you answer."}


async def test_openai_agents(load: Any, policy: Policy) -> None:
    workflow = load(OPENAI_AGENTS).SimpleOpenAIWorkflow
    outcome = await execute(LocalBackend(workflow=workflow), policy)
    assert outcome.result.status is RolloutStatus.SUCCESS, outcome.result.err_message
    assert outcome.result.sample is not None
    assert outcome.result.sample.messages[:2] == PROMPT
    assert outcome.result.sample.messages[2]["content"][0]["text"] == "answer to user"
    (request,) = policy.requests
    assert (request["temperature"], request["max_tokens"]) == (1.0, 4096)
    system = "Answer the user's request clearly.\n\nSearch before you answer."
    assert request["messages"] == [{"role": "system", "content": system}, PROMPT[1]]
    assert outcome.result.sample.trajectory_messages == [
        *request["messages"],
        {"role": "assistant", "content": "answer to user"},
    ]


async def test_custom_configuration(load: Any) -> None:
    module = load(CUSTOM_CONFIG)
    backend = LocalBackend(
        workflow=module.SearchWorkflow, workflow_config=module.search_workflow_config
    )
    assert backend.health()["concurrency"]["max_concurrent"] == 4
    outcome = await execute(backend)
    assert "no sample" in (outcome.workflow.err_message or "")


async def test_tool_workflow(load: Any, policy: Policy) -> None:
    module = load(TOOL_WORKFLOW)
    backend = LocalBackend(
        workflow=module.ToolWorkflow, workflow_config=module.tool_workflow_config
    )
    for _ in range(2):
        outcome = await execute(backend, policy)
        assert outcome.result.status is RolloutStatus.SUCCESS, outcome.result.err_message
        assert outcome.result.sample is not None
        messages = outcome.result.sample.trajectory_messages
        assert messages is not None
        assert [m["role"] for m in messages] == ["system", "user", "assistant", "tool", "assistant"]
        assert messages[3]["content"] == "results for ATIF"
        assert messages[4]["content"] == "answer to tool"
        assert json.loads(messages[2]["tool_calls"][0]["function"]["arguments"]) == {
            "query": "ATIF"
        }
    assert len(policy.requests) == 4


async def test_entry_point_wiring(load: Any) -> None:
    module = load(CUSTOM_CONFIG + WIRING)
    async with serve(module.app) as caller:
        health = (await caller.http.get("/health")).json()
        assert health["concurrency"]["max_concurrent"] == 4
        result = await caller.result(await caller.admitted(grade=False))
    assert result["status"] == "failure"
    assert "no sample" in result["err_message"]


async def test_several_workflows_in_one_entry_point(load: Any) -> None:
    """Only the class that is passed as ``workflow`` runs."""
    wired = WIRING.replace("SearchWorkflow,", "ExplicitWorkflow,")
    module = load(EXPLICIT_OUTPUT + CUSTOM_CONFIG + wired)
    async with serve(module.app) as caller:
        result = await caller.result(await caller.admitted(grade=False))
    assert result["status"] == "success"
    assert result["sample"]["messages"][-1] == {"role": "assistant", "content": "done"}
    assert result["sample"]["metrics"] == {"steps": 1.0}
