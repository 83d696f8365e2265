"""Workflows and graders that wait for the test to let them go on."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    ConcurrencyConfig,
    ExecutionRequest,
    Grader,
    GraderConfig,
    GraderContext,
)

DONE = {"role": "assistant", "content": "4"}


@dataclass
class Gate:
    """Counts who is inside; ``opened`` lets all of them out."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    inside: int = 0
    most: int = 0
    entered: int = 0

    async def pass_through(self) -> None:
        """Stay inside until the gate is opened."""
        self.inside += 1
        self.entered += 1
        self.most = max(self.most, self.inside)
        try:
            await self.opened.wait()
        finally:
            self.inside -= 1

    def __deepcopy__(self, memo: dict[int, Any]) -> "Gate":
        return self  # every run's config copy leads to the test's own gate


class GateConfig(AgentWorkflowConfig):
    """A workflow config with a gate."""

    name: str = "gate"
    gate: Any = None


class GateGraderConfig(GraderConfig):
    """A grader config with a gate."""

    name: str = "gate"
    gate: Any = None


class GatedWorkflow(AgentWorkflow[GateConfig]):
    """Passes its config's gate."""

    async def run(self, ctx: AgentWorkflowContext[GateConfig]) -> list[dict[str, Any]]:
        assert ctx.config is not None
        await ctx.config.gate.pass_through()
        return [*ctx.prompt, DONE]


class GatedGrader(Grader):
    """Passes its config's gate, then gives 1."""

    async def grade(self, ctx: GraderContext) -> None:
        assert isinstance(self.config, GateGraderConfig)
        await self.config.gate.pass_through()
        ctx.set_reward(1.0)


class QuickWorkflow(AgentWorkflow[Any]):
    """Answers at once."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> list[dict[str, Any]]:
        return [*ctx.prompt, DONE]


class QuickGrader(Grader):
    """Gives 1 at once."""

    async def grade(self, ctx: GraderContext) -> None:
        ctx.set_reward(1.0)


def workflow_config(gate: Gate, limit: int | None = None) -> GateConfig:
    """A config whose runs pass ``gate``, ``limit`` at once."""
    return GateConfig(gate=gate, concurrency=ConcurrencyConfig(max_concurrent=limit))


def grader_config(gate: Gate, limit: int | None = None) -> GateGraderConfig:
    """A config whose gradings pass ``gate``, ``limit`` at once."""
    return GateGraderConfig(gate=gate, concurrency=ConcurrencyConfig(max_concurrent=limit))


def request(rollout_id: str = "r", **fields: Any) -> ExecutionRequest:
    """A request with a label."""
    return ExecutionRequest.model_validate(
        {"id": rollout_id, "prompt": [{"role": "user", "content": "2 + 2"}], "label": "4"} | fields
    )


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks run until ``condition`` holds; fails after ten seconds."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 (the backend offers no event to wait on)
            await asyncio.sleep(0.005)
