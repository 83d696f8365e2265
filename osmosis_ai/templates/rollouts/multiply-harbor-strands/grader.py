"""The reward. In a file of its own, so that grading does not import the agent's framework."""

import re

from osmosis_ai.rollout import Grader, GraderContext

ANSWER = re.compile(r"####\s*(-?\d+)")


class MultiplyGrader(Grader):
    """1.0 for the right product after ``####`` in the last message, else 0.0."""

    async def grade(self, ctx: GraderContext) -> None:
        messages = ctx.sample.messages if ctx.sample else []
        text = str(messages[-1].get("content", "")) if messages else ""
        found = ANSWER.search(text)
        ctx.set_reward(1.0 if found and found.group(1) == ctx.label else 0.0)
