"""The workflow."""

from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowContext, AgentWorkflowOutput


class EchoWorkflow(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> AgentWorkflowOutput:
        return AgentWorkflowOutput(messages=[*ctx.prompt, {"role": "assistant", "content": "ok"}])
