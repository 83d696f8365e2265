"""A workflow that answers at once, and a grader that accepts it."""

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowContext,
    AgentWorkflowOutput,
    Grader,
    GraderContext,
)


class NoopWorkflow(AgentWorkflow):
    """Returns the prompt and one answer."""

    async def run(self, ctx: AgentWorkflowContext) -> AgentWorkflowOutput:
        answer = {"role": "assistant", "content": "done"}
        return AgentWorkflowOutput(messages=[*ctx.prompt, answer])


class NoopGrader(Grader):
    """Rewards every sample."""

    async def grade(self, ctx: GraderContext) -> None:
        ctx.set_reward(1.0)
