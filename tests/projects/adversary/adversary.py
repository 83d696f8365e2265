"""Workflows and graders that look around, misbehave, or end badly."""

import asyncio
import json
import os
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowContext,
    Grader,
    GraderContext,
    get_rollout_context,
)


def answer(ctx: AgentWorkflowContext, text: str) -> list[dict[str, Any]]:
    return [*ctx.prompt, {"role": "assistant", "content": text}]


class CallModel(AgentWorkflow):
    """Asks the model once, and reports the key that it had to send."""

    async def run(self, ctx: AgentWorkflowContext) -> list[dict[str, Any]]:
        context = get_rollout_context()
        assert context is not None
        body = {"model": "policy", "messages": ctx.prompt}

        def call() -> str:
            request = urllib.request.Request(
                f"{context.chat_completions_url}/chat/completions",
                data=json.dumps(body).encode(),
                headers={
                    "Content-Type": "application/json",
                    "Authorization": f"Bearer {context.api_key}",
                },
            )
            with urllib.request.urlopen(request) as response:
                return json.load(response)["choices"][0]["message"]["content"]

        said = await asyncio.to_thread(call)
        report = {
            "said": said,
            "key": context.api_key,
            "url": context.chat_completions_url,
            "interfaces": sorted(os.listdir("/sys/class/net")),
        }
        return answer(ctx, json.dumps(report))


class Search(AgentWorkflow):
    """Looks for a text, given in the prompt in two halves, wherever the sandbox can be read."""

    async def run(self, ctx: AgentWorkflowContext) -> list[dict[str, Any]]:
        wanted = "".join(json.loads(ctx.prompt[0]["content"]))
        command = (
            "for p in /proc/[0-9]*; do cat $p/environ $p/cmdline 2>/dev/null | "
            'grep -qa -- "$W" && echo $p; done; '
            'grep -rlas -- "$W" /logs /tests /run /tmp /app /root /etc /opt/osmosis/*.json'
        )
        found = subprocess.run(
            ["sh", "-c", f"read W; {command}"], input=wanted, capture_output=True, text=True
        )
        if ctx.artifacts_dir:
            (ctx.artifacts_dir / "seen.txt").write_text("by the agent")
        Path("/tmp/left-behind").write_text("by the agent")
        return answer(ctx, found.stdout.strip())


class Hang(AgentWorkflow):
    """Blocks its event loop for ever."""

    async def run(self, ctx: AgentWorkflowContext) -> None:
        while True:
            pass


class Exit(AgentWorkflow):
    """Ends its process under the runner."""

    async def run(self, ctx: AgentWorkflowContext) -> None:
        print("last words", flush=True)
        os._exit(7)


class Eat(AgentWorkflow):
    """Takes more memory than its sandbox has."""

    async def run(self, ctx: AgentWorkflowContext) -> None:
        held = []
        while True:
            held.append(bytearray(os.urandom(1024) * 16384))


class Wait(AgentWorkflow):
    """Waits for longer than any test."""

    async def run(self, ctx: AgentWorkflowContext) -> None:
        await asyncio.sleep(3600)


class Act(AgentWorkflow):
    """Runs the command in the instruction's last fenced block."""

    async def run(self, ctx: AgentWorkflowContext) -> list[dict[str, Any]]:
        command = ctx.prompt[-1]["content"].rsplit("```", 2)[1].removeprefix("sh\n")
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        return answer(ctx, done.stdout + done.stderr)


class LookAround(Grader):
    """Rewards 1.0 and notes which traces of the agent it can see."""

    async def grade(self, ctx: GraderContext) -> None:
        assert ctx.sample is not None
        seen = ctx.artifacts_dir / "seen.txt" if ctx.artifacts_dir else None
        ctx.sample.extra_fields = {
            "label": ctx.label,
            "artifact": seen.read_text() if seen is not None and seen.exists() else None,
            "left_behind": Path("/tmp/left-behind").exists(),
            "processes": sum(name.isdigit() for name in os.listdir("/proc")),
        }
        ctx.set_reward(1.0)


class AskJudge(Grader):
    """Rewards 1.0 when the judge answers, and notes how it was reached."""

    async def grade(self, ctx: GraderContext) -> None:
        assert ctx.sample is not None
        context = get_rollout_context()
        assert context is not None
        ctx.sample.extra_fields = {
            "rollout_id": context.rollout_id,
            "same_route": ctx.judge is not None and context.chat_completions_url == ctx.judge.url,
        }
        if ctx.judge is None:
            ctx.set_reward(0.0)
            return
        request = urllib.request.Request(
            f"{ctx.judge.url}/chat/completions",
            data=json.dumps({"model": "j", "messages": [{"role": "user", "content": "ok"}]}).encode(),
            headers={
                "Content-Type": "application/json",
                "Authorization": f"Bearer {ctx.judge.api_key}",
            },
        )

        def call() -> str:
            with urllib.request.urlopen(request) as response:
                return json.load(response)["choices"][0]["message"]["content"]

        ctx.sample.metrics = {"said": len(await asyncio.to_thread(call))}
        ctx.set_reward(1.0)


class Answer(AgentWorkflow):
    """Answers at once, without a model."""

    async def run(self, ctx: AgentWorkflowContext) -> list[dict[str, Any]]:
        return answer(ctx, "done")
