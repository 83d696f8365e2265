"""What ``run()`` may and may not return."""

import math
from typing import Any

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowContext,
    AgentWorkflowOutput,
    RolloutSample,
    SampleSource,
    get_rollout_context,
)

DONE = {"role": "assistant", "content": "4"}


class Fixed(SampleSource):
    """A source with one sample."""

    def __init__(self, sample: Any) -> None:
        self.sample = sample

    async def get_sample(self) -> RolloutSample:
        return self.sample


def register(sample: Any) -> None:
    """Make ``sample`` the rollout's fallback."""
    context = get_rollout_context()
    assert context is not None
    context.set_sample_source(Fixed(sample))


class Output(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return AgentWorkflowOutput(
            messages=[*ctx.prompt, DONE], metrics={"steps": 1.0, "tokens": 7}, info={"kept": False}
        )


class MessageList(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return [*ctx.prompt, DONE]


class NoneWithSource(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        register(RolloutSample(messages=[*ctx.prompt, DONE], metrics={"turns": 2}))


class NoneWithoutSource(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return None


class OutputBeatsSource(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        register(RolloutSample(messages=[{"role": "assistant", "content": "from the source"}]))
        return [*ctx.prompt, DONE]


class EmptyList(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return []


class OutputWithoutMessages(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        register(RolloutSample(messages=[DONE]))
        return AgentWorkflowOutput()


class Tuple(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return ([DONE], {"steps": 1.0})


class Dict(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return {"messages": [DONE]}


class Str(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return "4"


class ListOfStrings(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return ["4"]


class UnknownField(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return AgentWorkflowOutput(messages=[DONE], score=1.0)


class SmuggledField(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        output = AgentWorkflowOutput(messages=[DONE])
        output.__dict__["score"] = 1.0
        return output


class MetricNaN(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return AgentWorkflowOutput(messages=[DONE], metrics={"loss": math.nan})


class MetricInf(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return AgentWorkflowOutput(messages=[DONE], metrics={"loss": math.inf})


class MetricMinusInf(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return AgentWorkflowOutput(messages=[DONE], metrics={"loss": -math.inf})


class MetricNaNConstructed(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return AgentWorkflowOutput.model_construct(messages=[DONE], metrics={"loss": math.nan})


class MetricInfMutated(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        output = AgentWorkflowOutput(messages=[DONE], metrics={"loss": 1.0})
        output.metrics["loss"] = math.inf
        return output


class MetricText(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return AgentWorkflowOutput(messages=[DONE], metrics={"loss": "low"})
