"""Modules beside pyproject.toml, the documented layout of a rollout."""

from pathlib import Path

from helpers import last_number
from shared.texts import shout

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    AgentWorkflowOutput,
    Grader,
    GraderConfig,
    GraderContext,
)

SYSTEM_PROMPT = (Path(__file__).parent / "prompts" / "system.txt").read_text(encoding="utf-8")


class DoublingConfig(AgentWorkflowConfig):
    name: str = "doubling"
    factor: int = 2


class DoublingWorkflow(AgentWorkflow[DoublingConfig]):
    async def run(self, ctx: AgentWorkflowContext[DoublingConfig]) -> AgentWorkflowOutput:
        factor = ctx.config.factor if ctx.config else 2
        answer = shout(str(factor * last_number(str(ctx.prompt[-1]["content"]))))
        return AgentWorkflowOutput(messages=[*ctx.prompt, {"role": "assistant", "content": answer}])


class DoublingGrader(Grader):
    async def grade(self, ctx: GraderContext) -> None:
        return None


doubling_config = DoublingConfig()
doubling_grader_config = GraderConfig(name="doubling-grader")
