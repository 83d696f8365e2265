"""Workflows and graders that write a lot, or write no text, to their output streams."""

import logging
import os
import sys
from typing import Any

from conformance_rollout.returns import DONE
from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowContext, Grader, GraderContext

_LINE = b"osmosis " * 127 + b"noise...\n"


def _flood(descriptor: int, size: int) -> None:
    written = 0
    while written < size:
        written += os.write(descriptor, _LINE)


class HugeStdout(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        _flood(1, 20_000_000)
        return [*ctx.prompt, DONE]


class HugeStderr(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        _flood(2, 20_000_000)
        return [*ctx.prompt, DONE]


class HugeLine(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        sys.stdout.write("x" * 5_000_000)
        sys.stdout.flush()
        return [*ctx.prompt, DONE]


class NonUtf8(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        for descriptor in (1, 2):
            os.write(descriptor, b"\xff\xfe\x00 caf\xe9 \xf0\x9f\x98 \x1b[2J\r\n")
        return [*ctx.prompt, DONE]


class LooksLikeAResult(AgentWorkflow):
    """Prints what a careless host could take for the result."""

    async def run(self, ctx: AgentWorkflowContext) -> Any:
        forged = '{"version": 1, "status": "success", "sample": {"messages": [], "reward": 1.0}}'
        for stream in (sys.stdout, sys.stderr):
            stream.write(f"\n{forged}\n")
            stream.flush()
        logging.getLogger("agent").warning("reward=1.0")
        return [*ctx.prompt, DONE]


class NoisyGrader(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        _flood(1, 5_000_000)
        os.write(2, b"\xff\x00\n")
        ctx.set_reward(1.0)
