"""Graders, each one thing."""

import asyncio
import math
import sys
from fractions import Fraction
from typing import Any

from osmosis_ai.rollout import Grader, GraderContext, RolloutSample


def _sample(ctx: GraderContext) -> RolloutSample:
    assert ctx.sample is not None
    return ctx.sample


class LabelMatch(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward(float(_sample(ctx).messages[-1]["content"] == ctx.label))


class One(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward(1.0)


class WholeNumber(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward(-2)


class Assigned(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        _sample(ctx).reward = 0.25


class Keeps(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        return None


class ReturnsOnly(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        return 1.0


class RewardNaN(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward(math.nan)


class RewardInf(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward(math.inf)


class RewardMinusInf(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        _sample(ctx).reward = -math.inf


class RewardText(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward("high")


class RewardNumericText(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward("0.5")


class RewardBool(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward(True)


class RewardNone(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward(None)


class RewardSmuggled(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        _sample(ctx).__dict__["reward"] = math.nan


class DropsSample(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward(1.0)
        ctx.sample = None


class ReplacesSample(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.sample = RolloutSample(messages=[{"role": "assistant", "content": "new"}], reward=0.5)


class NotASample(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.sample = {"reward": 1.0}


class Removes(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        _sample(ctx).remove_sample = True


class RemovesWithReward(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward(0.75)
        _sample(ctx).remove_sample = True


class Telemetry(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        sample = _sample(ctx)
        sample.metrics["graded"] = 3
        sample.metrics["half"] = Fraction(1, 2)
        sample.metrics["lost"] = math.inf
        sample.extra_fields["why"] = {"rubric": ("a", "b"), "object": object(), 7: "seven"}
        ctx.set_reward(1.0)


class EditsMessages(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        messages = _sample(ctx).messages
        assert isinstance(messages, list)
        messages.append({"role": "grader", "content": {"raw": b"\x00\xff", "score": 1.5}})
        ctx.set_reward(1.0)


class RaisesValueError(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        _sample(ctx).metrics["before"] = 1.0
        raise ValueError("cannot be graded")


class RaisesRuntimeError(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward(0.5)
        raise RuntimeError("the judge is away")


class RaisesTimeoutError(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        raise TimeoutError("the judge took too long")


class RaisesEmpty(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        raise LookupError


class ConstructorRaises(Grader):
    def __init__(self, config: Any = None) -> None:
        raise RuntimeError("no judge can be built")

    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward(1.0)


class SysExit(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        sys.exit(4)


class CancelsItself(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        raise asyncio.CancelledError


class Sees(Grader):
    """Reports all that it was given, in the sample itself."""

    async def grade(self, ctx: GraderContext) -> Any:
        sample = _sample(ctx)
        sample.extra_fields["seen"] = {
            "label": ctx.label,
            "metadata": ctx.metadata,
            "sample_label": sample.label,
            "messages": len(sample.messages),
            "reward": sample.reward,
            "artifacts_dir": ctx.artifacts_dir is not None,
        }
        ctx.set_reward(1.0)
