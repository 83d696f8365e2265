"""Workflows and graders that take their time, or refuse to be stopped."""

import asyncio
import contextlib
import time
from typing import Any

from conformance_rollout.returns import DONE
from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowContext, Grader, GraderContext


class Sleeping(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        await asyncio.sleep(30)
        return [DONE]


class Blocking(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        time.sleep(2)  # noqa: ASYNC251 (blocking the loop is the case)
        return [DONE]


class BlockingThenRaising(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        time.sleep(2)  # noqa: ASYNC251 (blocking the loop is the case)
        raise ValueError("too late to matter")


class Swallowing(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(30)
        return [DONE]


class Replacing(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            raise ValueError("instead of the cancellation") from None


class CleaningUp(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        try:
            await asyncio.sleep(30)
        finally:
            if ctx.artifacts_dir:
                (ctx.artifacts_dir / "cleanup.txt").write_text("ran")


class Quick(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        await asyncio.sleep(0.05)
        return [DONE]


class SleepingGrader(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward(0.5)
        await asyncio.sleep(30)


class BlockingGrader(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        time.sleep(2)  # noqa: ASYNC251 (blocking the loop is the case)
        ctx.set_reward(1.0)


class SwallowingGrader(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ctx.set_reward(1.0)
