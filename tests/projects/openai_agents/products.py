"""An agent of the OpenAI Agents SDK that multiplies with a tool."""

from typing import Any

from agents import ModelSettings, Runner, function_tool

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    Grader,
    GraderContext,
)
from osmosis_ai.rollout.integrations.agents.openai_agents import (
    OsmosisAgent,
    OsmosisMemorySession,
    OsmosisRolloutModel,
)


@function_tool
def multiply(a: int, b: int) -> int:
    """Multiply two integers."""
    return a * b


class ProductsConfig(AgentWorkflowConfig):
    """What the agent is made of."""

    name: str = "products"
    model: Any = OsmosisRolloutModel(params={"temperature": 0.5})
    streamed: bool = False


products = ProductsConfig()
streamed_products = ProductsConfig(streamed=True)


class ProductsWorkflow(AgentWorkflow[ProductsConfig]):
    """Lets the policy call the tool, then answer."""

    async def run(self, ctx: AgentWorkflowContext[ProductsConfig]) -> None:
        config = ctx.config or products
        agent = OsmosisAgent(
            name="multiplier",
            instructions="Multiply with the tool.",
            model=config.model,
            model_settings=ModelSettings(max_tokens=256),
            tools=[multiply],
        )
        session = OsmosisMemorySession()
        if config.streamed:
            run = Runner.run_streamed(agent, ctx.prompt, session=session)
            async for _ in run.stream_events():
                pass
        else:
            await Runner.run(agent, ctx.prompt, session=session)


class ProductsGrader(Grader):
    """Looks for the label in the last item of the session, as the SDK keeps it."""

    async def grade(self, ctx: GraderContext) -> None:
        assert ctx.sample is not None
        last = ctx.sample.messages[-1]
        text = "".join(part["text"] for part in last["content"])
        ctx.set_reward(1.0 if text.endswith(f"#### {ctx.label}") else 0.0)
