"""Rollouts for the server's tests; the multiplication is a real Strands agent."""

import asyncio
from typing import Any

from strands import tool

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowContext,
    Grader,
    GraderContext,
    RolloutSample,
    SampleSource,
    get_rollout_context,
)
from osmosis_ai.rollout.integrations.agents.strands import (
    OsmosisRolloutModel,
    OsmosisStrandsAgent,
)


@tool(name="multiply")
def multiply(a: int, b: int) -> str:
    """Multiply two whole numbers."""
    return str(a * b)


class MultiplyWorkflow(AgentWorkflow[Any]):
    """Asks the policy, which calls the tool and then answers."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> None:
        if ctx.artifacts_dir:
            (ctx.artifacts_dir / "run.log").write_text("started\n")
        agent = OsmosisStrandsAgent(
            name="multiply",
            model=OsmosisRolloutModel(),
            tools=[multiply],
            messages=ctx.prompt,
            callback_handler=None,
        )
        await agent.invoke_async()


class MultiplyGrader(Grader):
    """1 when the last line ends in the label."""

    async def grade(self, ctx: GraderContext) -> None:
        assert ctx.sample is not None
        last = ctx.sample.messages[-1]["content"][-1]["text"]
        ctx.sample.metrics["length"] = len(last)
        ctx.set_reward(1.0 if last.endswith(f"#### {ctx.label}") else 0.0)


class DroppingGrader(Grader):
    """Rewards and drops the sample."""

    async def grade(self, ctx: GraderContext) -> None:
        assert ctx.sample is not None
        ctx.set_reward(1.0)
        ctx.sample.remove_sample = True


class FailingGrader(Grader):
    """Rewards, then fails."""

    async def grade(self, ctx: GraderContext) -> None:
        ctx.set_reward(1.0)
        raise RuntimeError("grader broke \ud800")


class BytesWorkflow(AgentWorkflow[Any]):
    """Its history holds bytes, which JSON cannot hold."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> list[dict[str, Any]]:
        return [*ctx.prompt, {"role": "assistant", "content": b"\x00\xff"}]


class _OddSource(SampleSource):
    async def get_sample(self) -> RolloutSample:
        return RolloutSample(
            messages=[{"role": "assistant", "content": "a\ud800b"}],
            trajectory_messages=None,
            metrics={"nan": float("nan"), "steps": 2},
            extra_fields={"tuple": (1, 2), "object": object()},
        )


class OddWorkflow(AgentWorkflow[Any]):
    """Its sample holds what JSON or UTF-8 cannot, and asks not to be persisted."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> None:
        context = get_rollout_context()
        assert context is not None
        context.set_sample_source(_OddSource())


class StubbornWorkflow(AgentWorkflow[Any]):
    """Swallows its first cancellation and returns a sample all the same."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> list[dict[str, Any]]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return [*ctx.prompt, {"role": "assistant", "content": "408"}]
        return []
