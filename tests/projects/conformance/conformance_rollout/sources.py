"""Samples that come from a registered source, and the context they register on."""

import asyncio
import math
from fractions import Fraction
from typing import Any

from conformance_rollout.returns import DONE, Fixed, register
from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowContext,
    RolloutContext,
    RolloutSample,
    SampleSource,
    get_rollout_context,
)


class NoTrajectory(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        register(RolloutSample(messages=[*ctx.prompt, DONE], trajectory_messages=None))


class OwnTrajectory(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        native = [{"kind": "final", "blocks": [{"text": "4"}]}]
        register(RolloutSample(messages=native, trajectory_messages=[*ctx.prompt, DONE]))


class OwnLabel(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        register(RolloutSample(messages=[DONE], label="the source's own"))


class OwnReward(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        register(RolloutSample(messages=[DONE], reward=0.125))


class Removed(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        register(RolloutSample(messages=[DONE], remove_sample=True))


class Telemetry(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        keys = {2: "int key", 0.5: "float key", True: "bool key", None: "none key"}
        sample = RolloutSample(
            messages=[DONE],
            metrics={"turns": 2, "ratio": 0.5, "half": Fraction(1, 2), "lost": math.nan},
            extra_fields={
                "nested": {"list": [1, "two", None, True], "tuple": (1, (2.5,)), "keys": keys},
                "object": object(),
                "bytes": b"\xff",
            },
        )
        sample.extra_fields.update(keys)  # construction refuses such keys, mutation does not
        register(sample)


class NotASample(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        register({"messages": [DONE]})


class Raising(AgentWorkflow):
    class Source(SampleSource):
        async def get_sample(self) -> RolloutSample:
            raise RuntimeError("the history is gone")

    async def run(self, ctx: AgentWorkflowContext) -> Any:
        context = get_rollout_context()
        assert context is not None
        context.set_sample_source(self.Source())


class Slow(AgentWorkflow):
    class Source(SampleSource):
        async def get_sample(self) -> RolloutSample:
            await asyncio.sleep(30)
            return RolloutSample(messages=[DONE])

    async def run(self, ctx: AgentWorkflowContext) -> Any:
        context = get_rollout_context()
        assert context is not None
        context.set_sample_source(self.Source())


class Second(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        register(RolloutSample(messages=[DONE]))
        register(RolloutSample(messages=[DONE]))


class RegisteredInConstructor(AgentWorkflow):
    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        register(RolloutSample(messages=[DONE]))

    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return None


class NestedContext(AgentWorkflow):
    """The outer context is back after an inner one, whose source was its own."""

    async def run(self, ctx: AgentWorkflowContext) -> Any:
        outer = get_rollout_context()
        assert outer is not None
        with RolloutContext(rollout_id="inner") as inner:
            seen_inside = get_rollout_context()
            inner.set_sample_source(Fixed(RolloutSample(messages=[])))
        in_thread = await asyncio.to_thread(get_rollout_context)
        async with asyncio.TaskGroup() as group:
            in_task = group.create_task(_current())
        report = {
            "inner": seen_inside is inner,
            "restored": get_rollout_context() is outer,
            "in_thread": in_thread is outer,
            "in_task": in_task.result() is outer,
            "rollout_id": outer.rollout_id,
        }
        register(RolloutSample(messages=[{"role": "assistant", "content": report}]))


async def _current() -> RolloutContext | None:
    return get_rollout_context()
