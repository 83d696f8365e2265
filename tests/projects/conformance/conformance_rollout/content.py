"""Messages that do not travel easily."""

import dataclasses
import datetime
import enum
import math
from pathlib import PurePosixPath
from typing import Any

from pydantic import BaseModel

from conformance_rollout.returns import DONE, register
from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowContext, RolloutSample


class _Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class _Call:
    name: str
    parent: "_Call | None" = None


class _Usage(BaseModel):
    tokens: int = 3
    tags: tuple[str, ...] = ("a",)


class _Plain:
    pass


class BytesInMessages(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return [{"role": "assistant", "content": [{"image": b"\x89PNG\xff\x00"}, bytearray(b"x")]}]


class DeepNesting(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return [{"role": "assistant", "content": nested(60)}]


class TooDeepNesting(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return [{"role": "assistant", "content": nested(5000)}]


class Circular(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        parent = _Call("outer")
        parent.parent = parent
        turns: list[Any] = []
        turns.extend([turns, turns])
        return [{"role": "assistant", "content": [parent, turns]}]


def nested(depth: int) -> dict[str, Any]:
    """A dict in a dict, ``depth`` times."""
    value: dict[str, Any] = {"end": True}
    for _ in range(depth):
        value = {"in": value}
    return value


class OddKeys(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        keys = {2: "int", 0.5: "float", None: "none", True: "bool", (1, 2): "tuple"}
        return [{"role": "assistant", "content": keys}]


class Objects(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        content = [
            _Colour.RED,
            _Call("lookup"),
            _Usage(),
            ("a", 1),
            {"one"},
            datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
            datetime.date(2026, 1, 2),
            PurePosixPath("some/file"),
            _Plain(),
        ]
        return [{"role": "assistant", "content": content}]


class OddText(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        text = "nul \x00, lone \udcff, emoji \U0001f600, line\u2028end, \x1b[31mred"
        return [{"role": "assistant", "content": text, "$osmosis:bytes": "not bytes"}]


class OddNumbers(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        numbers = [math.nan, math.inf, -0.0, 10**40, 1e-320, 1, 1.0, True]
        return [{"role": "assistant", "content": numbers}]


class Big(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return [{"role": "assistant", "content": "0123456789abcdef" * (5 * 65536)}]


class Many(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return [{"role": "assistant", "content": str(turn)} for turn in range(2000)]


class ReservedNames(AgentWorkflow):
    """Field names and values that an encoding of the sample may use for itself."""

    async def run(self, ctx: AgentWorkflowContext) -> Any:
        content = {"$osmosis:dict": [["a", 1]], "__class__": "x", "$ref": "#/y"}
        register(RolloutSample(messages=[DONE, {"content": content}], extra_fields=content))
