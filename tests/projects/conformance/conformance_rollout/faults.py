"""Workflows that raise, each one thing."""

import asyncio
import os
import sys
from typing import Any

from pydantic import BaseModel

from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowContext


class _Point(BaseModel):
    x: int


class _Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


class ValueErrorRaised(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise ValueError("the value is wrong")


class TypeErrorRaised(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise TypeError("the type is wrong")


class AssertionErrorRaised(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise AssertionError("it should hold")


class _RefusedError(Exception):
    def __init__(self, status_code: int) -> None:
        super().__init__(f"the model answered {status_code}")
        self.status_code = status_code


class ModelAway(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise _RefusedError(503)


class ModelFull(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise _RefusedError(400)


class OwnTimeout(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise TimeoutError("the tool took too long")


class OwnTimeoutScope(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(30)


class RuntimeErrorRaised(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise RuntimeError("the agent gave up\nin two lines")


class KeyErrorRaised(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return [{"role": "assistant", "content": {}["answer"]}]


class OSErrorRaised(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise OSError(28, "No space left on device")


class ConnectionErrorRaised(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise ConnectionError("the policy hung up")


class PydanticError(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        _Point.model_validate({"x": "left"})


class GroupOfOneKind(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise ExceptionGroup("two tools failed", [ValueError("a"), TypeError("b")])


class GroupMixed(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise ExceptionGroup("two tools failed", [ValueError("a"), TimeoutError("b")])


class TaskGroupFailed(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(30))
            group.create_task(_fail())


async def _fail() -> None:
    raise ValueError("a child task failed")


class EmptyText(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise RuntimeError


class BrokenText(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise _Silent


class SurrogateText(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise ValueError("lone \ud800 surrogate")


class NonUtf8Text(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise ValueError("file " + os.fsdecode(b"caf\xe9") + " \x00 \U0001f600")


class LongText(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise RuntimeError("x" * 300_000)


class ConstructorRaises(AgentWorkflow):
    def __init__(self, config: Any = None) -> None:
        raise ValueError("cannot be built")

    async def run(self, ctx: AgentWorkflowContext) -> Any:
        return []


class NotAsync(AgentWorkflow):
    def run(self, ctx: AgentWorkflowContext) -> Any:
        raise ValueError("raised before anything was awaited")


class SysExit(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        sys.exit(3)


class SysExitText(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        sys.exit("goodbye")


class CancelsItself(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise asyncio.CancelledError


class CancelsItsTask(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(30)


class GroupOfExits(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        raise BaseExceptionGroup("tools exited", [SystemExit(3), ValueError("x")])


class SysExitInThread(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        await asyncio.to_thread(sys.exit, 5)
