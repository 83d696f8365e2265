"""Workflows and graders that write and read artifacts."""

import os
from pathlib import Path
from typing import Any

from conformance_rollout.returns import DONE
from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowContext, Grader, GraderContext


def _dir(ctx: AgentWorkflowContext | GraderContext) -> Path:
    assert ctx.artifacts_dir is not None
    return ctx.artifacts_dir


class WritesText(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        (_dir(ctx) / "run.log").write_text("started\nended\n")
        return [*ctx.prompt, DONE]


class WritesTree(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        root = _dir(ctx)
        (root / "a" / "b").mkdir(parents=True)
        (root / "a" / "b" / "deep.txt").write_text("deep")
        (root / "a" / "side.txt").write_text("side")
        (root / "empty.txt").touch()
        (root / "a name with spaces, ü.txt").write_text("odd name")
        (root / ".hidden").write_text("hidden")
        return [*ctx.prompt, DONE]


class WritesBinary(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        (_dir(ctx) / "image.png").write_bytes(bytes(range(256)) * 1024)
        return [*ctx.prompt, DONE]


class WritesSymlinks(AgentWorkflow):
    """The links lead outside: their targets' content must not be collected."""

    async def run(self, ctx: AgentWorkflowContext) -> Any:
        root = _dir(ctx)
        (root / "real.txt").write_text("real")
        (root / "passwd").symlink_to("/etc/passwd")
        (root / "etc").symlink_to("/etc", target_is_directory=True)
        (root / "dangling").symlink_to("nowhere")
        os.mkfifo(root / "pipe")
        return [*ctx.prompt, DONE]


class WritesThenFails(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        (_dir(ctx) / "last-words.txt").write_text("it broke here")
        raise RuntimeError("broken")


class GraderWrites(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        root = _dir(ctx)
        (root / "grades").mkdir()
        (root / "grades" / "report.txt").write_text("well done")
        ctx.set_reward(1.0)


class GraderReads(Grader):
    """Rewards what the agent's log says, and adds a line to it."""

    async def grade(self, ctx: GraderContext) -> Any:
        log = _dir(ctx) / "run.log"
        ctx.set_reward(1.0 if log.read_text() == "started\nended\n" else 0.0)
        with log.open("a") as stream:
            stream.write("graded\n")


class GraderFailsAfterWriting(Grader):
    async def grade(self, ctx: GraderContext) -> Any:
        (_dir(ctx) / "verdict.txt").write_text("unsure")
        raise RuntimeError("the judge left")
