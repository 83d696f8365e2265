"""Rollouts whose agents ask the models that the prompt names, run as a server runs them."""

import asyncio
from typing import Any

import httpx

from local_backend import LocalBackend
from osmosis_ai.gateway import Gateway
from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowContext,
    ExecutionRequest,
    ExecutionResult,
    Grader,
    GraderContext,
    get_rollout_context,
)
from osmosis_ai.rollout.context import RolloutContext
from osmosis_ai.rollout.trajectory.save import save_trajectory
from osmosis_ai.telemetry import Telemetry, phase
from tests.gateway.model_server import KEY

PROMPT = "a-prompt-that-nobody-else-may-see"
LABEL = "the-reference-answer"


async def ask(model: str, url: str, token: str | None, *, stream: bool = False) -> httpx.Response:
    """Call a model as an agent does."""
    async with httpx.AsyncClient(timeout=20) as client:
        return await client.post(
            f"{url}/chat/completions",
            json={
                "model": model,
                "messages": [{"role": "user", "content": PROMPT}],
                "stream": stream,
                "stream_options": {"include_usage": True} if stream else None,
            },
            headers={"Authorization": f"Bearer {token}"},
        )


class Asks(AgentWorkflow[Any]):
    """Asks each model in ``metadata["models"]``."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> list[dict[str, Any]]:
        context = get_rollout_context()
        assert context is not None
        for model in (ctx.metadata or {})["models"]:
            stream = model.endswith("-stream")
            await ask(
                model.removesuffix("-stream"),
                context.chat_completions_url,
                context.api_key,
                stream=stream,
            )
        return [*ctx.prompt, {"role": "assistant", "content": "done"}]


class Breaks(AgentWorkflow[Any]):
    """Fails with the prompt in its message."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> None:
        raise RuntimeError(f"could not answer {PROMPT}")


class AsksJudge(Grader):
    """Asks the judge, then gives 1."""

    async def grade(self, ctx: GraderContext) -> None:
        if ctx.judge is not None:
            await ask("plain", ctx.judge.url, ctx.judge.api_key)
        await asyncio.sleep(0.02)
        ctx.set_reward(1.0)


async def run_observed(
    telemetry: Telemetry,
    backend: LocalBackend,
    upstream: str,
    rollout_id: str = "r-1",
    models: tuple[str, ...] = ("plain",),
) -> ExecutionResult:
    """Run one rollout between a gateway and the disk."""
    request = ExecutionRequest(
        id=rollout_id,
        prompt=[{"role": "user", "content": PROMPT}],
        label=LABEL,
        metadata={"models": list(models)},
    )
    async with Gateway() as gateway:
        with telemetry.rollout(rollout_id) as observed:
            async with gateway.open(rollout_id, upstream, KEY) as endpoint:
                with RolloutContext(endpoint.url, endpoint.token, rollout_id):
                    outcome = await backend.execute(request)
                with phase("persistence"):
                    await save_trajectory(rollout_id=rollout_id, result=outcome.result_to_save)
            observed.outcome(outcome.result)
    await backend.shutdown()
    return outcome.result
