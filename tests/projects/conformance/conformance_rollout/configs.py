"""Configs that hold live objects, and code that reads and changes them."""

import threading
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from conformance_rollout.returns import DONE
from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    ConcurrencyConfig,
    Grader,
    GraderConfig,
    GraderContext,
)


def add(left: int, right: int) -> int:
    """A tool."""
    return left + right


class Model:
    """Stands for a framework's model object: no pydantic, arbitrary state."""

    def __init__(self, **params: Any) -> None:
        self.params = params
        self.calls: list[str] = []


class Limits(BaseModel):
    max_turns: int = 8
    stop: list[str] = ["done"]


class ToolConfig(AgentWorkflowConfig):
    name: str = "tools"
    model: Any = Model(temperature=1.0)
    tools: list[Callable[..., Any]] = [add]  # noqa: RUF012 (pydantic copies it)
    limits: Limits = Limits()
    concurrency: ConcurrencyConfig = ConcurrencyConfig(max_concurrent=2)


class JudgeConfig(GraderConfig):
    name: str = "judge"
    weights: dict[str, float] = {"exact": 1.0}  # noqa: RUF012
    model: Any = Model(temperature=0.0)


tool_config = ToolConfig(limits=Limits(max_turns=3), undeclared={"kept": [1]})
judge_config = JudgeConfig(weights={"exact": 0.5})
plain_config = AgentWorkflowConfig(name="plain", description="no field of its own")
uncopyable_config = AgentWorkflowConfig(name="locked", lock=threading.Lock())
uncopyable_judge = GraderConfig(name="locked", lock=threading.Lock())


class ReadsConfig(AgentWorkflow[ToolConfig]):
    async def run(self, ctx: AgentWorkflowContext[ToolConfig]) -> Any:
        config = ctx.config
        assert config is not None
        report = {
            "same": config is self.config,
            "type": type(config).__name__,
            "name": config.name,
            "temperature": config.model.params["temperature"],
            "tool": config.tools[0](1, 2),
            "tool_name": config.tools[0].__name__,
            "max_turns": config.limits.max_turns,
            "undeclared": config.model_dump()["undeclared"],
            "max_concurrent": config.concurrency.max_concurrent,
        }
        return [{"role": "assistant", "content": report}]


class ChangesConfig(AgentWorkflow[ToolConfig]):
    """Reports what it finds, then changes all of it; a later run must not notice."""

    async def run(self, ctx: AgentWorkflowContext[ToolConfig]) -> Any:
        config = ctx.config
        assert config is not None
        found = [
            config.name,
            list(config.model.calls),
            config.limits.max_turns,
            list(config.limits.stop),
            len(config.tools),
        ]
        config.name = "changed"
        config.model.calls.append("called")
        config.limits.max_turns = 99
        config.limits.stop.append("changed")
        config.tools.append(add)
        return [{"role": "assistant", "content": found}]


class PlainConfig(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        assert ctx.config is not None
        report = {"name": ctx.config.name, "description": ctx.config.description}
        return [{"role": "assistant", "content": report}, DONE]


class ReadsJudgeConfig(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        config = self.config
        assert isinstance(config, JudgeConfig)
        ctx.set_reward(config.weights["exact"])


class ChangesJudgeConfig(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        config = self.config
        assert isinstance(config, JudgeConfig)
        ctx.set_reward(config.weights["exact"] + len(config.model.calls))
        config.weights["exact"] = 9.0
        config.model.calls.append("called")


class WithoutConfig(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        ctx.set_reward(1.0 if self.config is None else 0.0)
