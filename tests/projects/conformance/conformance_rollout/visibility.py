"""What a workflow is given, and what it must never find."""

import os
import sys
from pathlib import Path
from typing import Any

from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowContext, get_rollout_context

_FILES = ("/proc/self/environ", "/proc/self/cmdline", "/proc/1/environ", "/proc/1/cmdline")
_SANDBOX_DIRS = ("/logs", "/tests", "/run/osmosis")


class SearchesForLabel(AgentWorkflow):
    """Looks for the label wherever a process can look; it arrives spelled backwards."""

    async def run(self, ctx: AgentWorkflowContext) -> Any:
        assert ctx.metadata is not None
        label: str = ctx.metadata["backwards"][::-1]
        found = {
            "context": label in repr(ctx) + repr(get_rollout_context()),
            "environment": label in repr(dict(os.environ)),
            "argv": label in repr([*sys.argv, *sys.orig_argv]),
            "files": any(label.encode() in _read(Path(name)) for name in _FILES),
            "sandbox": any(label.encode() in _read(path) for path in _sandbox_files()),
            "attribute": hasattr(ctx, "label"),
        }
        return [{"role": "assistant", "content": found}]


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(1_000_000)
    except OSError:
        return b""


def _sandbox_files() -> list[Path]:
    return [
        path
        for root in _SANDBOX_DIRS
        for path in Path(root).rglob("*")
        if path.is_file() and not path.is_symlink()
    ]


class Reports(AgentWorkflow):
    """Reports its input."""

    async def run(self, ctx: AgentWorkflowContext) -> Any:
        context = get_rollout_context()
        report = {
            "prompt": ctx.prompt,
            "metadata": ctx.metadata,
            "config": ctx.config is None and self.config is None,
            "artifacts_dir": ctx.artifacts_dir is not None and ctx.artifacts_dir.is_dir(),
            "rollout_id": context.rollout_id if context else None,
        }
        return [{"role": "assistant", "content": report}]


class MutatesMetadata(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        assert ctx.metadata is not None
        before = {"list": list(ctx.metadata["list"])}
        ctx.metadata["list"].append("the agent was here")
        ctx.metadata["new"] = True
        return [{"role": "assistant", "content": before}]


class MutatesPrompt(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> Any:
        ctx.prompt[0]["content"][0]["text"] += "!"
        ctx.prompt.append({"role": "assistant", "content": "4"})
        return ctx.prompt
