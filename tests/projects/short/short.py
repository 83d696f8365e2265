"""Short rollouts that say whose they are.

The prompt is a JSON object: the rollout's ``id``, how long to ``run`` and ``grade``
(seconds), and the ``reward`` to give.
"""

import asyncio
import json
from typing import Any

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowContext,
    AgentWorkflowOutput,
    Grader,
    GraderContext,
)


def asked(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """What the prompt says."""
    return json.loads(messages[0]["content"])


class ShortWorkflow(AgentWorkflow):
    """Waits, and answers with the rollout's id."""

    async def run(self, ctx: AgentWorkflowContext) -> AgentWorkflowOutput:
        order = asked(ctx.prompt)
        if ctx.artifacts_dir is not None:
            (ctx.artifacts_dir / "whose").write_text(order["id"])
        await asyncio.sleep(order["run"])
        answer = {"role": "assistant", "content": f"answer of {order['id']}"}
        return AgentWorkflowOutput(messages=[*ctx.prompt, answer])


class ShortGrader(Grader):
    """Waits, and gives the reward asked for."""

    async def grade(self, ctx: GraderContext) -> None:
        assert ctx.sample is not None
        order = asked(ctx.sample.messages)
        await asyncio.sleep(order["grade"])
        ctx.set_reward(order["reward"])
