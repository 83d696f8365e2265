"""A Strands agent that answers products with the help of a tool."""

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


@tool(name="multiply")
def multiply(a: int, b: int) -> int:
    """Multiply two integers."""
    return a * b


class MultiplyConfig(AgentWorkflowConfig):
    """What the agent is made of."""

    name: str = "multiply"
    model: Any = OsmosisRolloutModel(params={"temperature": 1.0})
    tools: Any = [multiply]


multiply_config = MultiplyConfig()


class MultiplyWorkflow(AgentWorkflow[MultiplyConfig]):
    """Lets the policy call the tool, then answer."""

    async def run(self, ctx: AgentWorkflowContext[MultiplyConfig]) -> None:
        config = ctx.config or multiply_config
        agent = OsmosisStrandsAgent(
            name="multiply-agent",
            model=config.model,
            tools=config.tools,
            messages=ctx.prompt,
            callback_handler=None,
        )
        await agent.invoke_async()
        if ctx.artifacts_dir:
            (ctx.artifacts_dir / "turns.txt").write_text(f"{len(agent.messages)}\n")
