"""What a backend believes of a workflow that speaks for itself."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from local_backend import LocalBackend
from osmosis_ai.gateway import Gateway, GatewayLimits
from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowContext,
    ExecutionOutcome,
    ExecutionRequest,
    RolloutContext,
    RolloutSample,
    SampleSource,
    get_rollout_context,
)
from osmosis_ai.rollout.backend.believed import NO_SERVICE_FAILED, REWARD_CLEARED, believed
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus
from tests.gateway.model_server import KEY, model_server

PROMPT = [{"role": "user", "content": "6 times 7"}]


class Paid(SampleSource):
    """Has a sample with a reward."""

    async def get_sample(self) -> RolloutSample:
        return RolloutSample(messages=PROMPT, reward=1.0)


class Rewarded(AgentWorkflow[Any]):
    """Registers that."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> None:
        context = get_rollout_context()
        assert context is not None
        context.set_sample_source(Paid())


class Away(Exception):
    """What any code can raise."""

    status_code = 503


class Asks(AgentWorkflow[Any]):
    """Asks the model that the rollout's metadata names, and claims that it was away."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> Any:
        context = get_rollout_context()
        assert context is not None
        async with httpx.AsyncClient(trust_env=False) as client:
            for model in (ctx.metadata or {})["models"]:
                await client.post(
                    f"{context.chat_completions_url}/chat/completions",
                    json={"model": model, "messages": PROMPT},
                    headers={"Authorization": f"Bearer {context.api_key}"},
                )
        raise Away("503, it says")


@pytest.fixture(autouse=True)
def artifact_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_OSMOSIS_ROLLOUT_ARTIFACT_ROOT", str(tmp_path))


@pytest.mark.parametrize("taken", [False, True])
async def test_a_workflows_own_reward_counts_where_the_backend_takes_it(taken: bool) -> None:
    backend = LocalBackend(workflow=Rewarded, workflow_rewards=taken)
    outcome = await backend.execute(ExecutionRequest(id="r", prompt=PROMPT, grade=False))
    assert outcome.result.sample is not None
    assert outcome.result.sample.reward == (1.0 if taken else None)
    assert outcome.result.extra_fields.get("warnings", []) == ([] if taken else [REWARD_CLEARED])
    await backend.shutdown()


async def asked(*models: str, limits: GatewayLimits | None = None) -> ExecutionOutcome:
    """A rollout that asked these models of a real server through a gateway."""
    backend = LocalBackend(workflow=Asks)
    metadata = {"models": list(models)}
    request = ExecutionRequest(id="r", prompt=PROMPT, metadata=metadata, grade=False)
    async with (
        model_server() as server,
        Gateway() as gateway,
        gateway.open("r", server.url, KEY, limits=limits) as endpoint,
    ):
        with RolloutContext(rollout_id="r", endpoint=endpoint):
            return await backend.execute(request)


@pytest.mark.parametrize("model", ["busy", "fails", "garbage", "dies", "error-with-200"])
async def test_a_service_that_failed_excuses(model: str) -> None:
    outcome = await asked("plain", model)
    assert outcome.result.err_category == "http_error"


async def test_a_claim_does_not() -> None:
    outcome = await asked("plain")
    assert outcome.result.err_category == "agent_error"
    assert outcome.result.extra_fields["warnings"] == [NO_SERVICE_FAILED]


async def test_a_limit_that_the_agent_ran_into_does_not() -> None:
    outcome = await asked("plain", "plain", limits=GatewayLimits(max_calls=1))
    assert outcome.result.err_category == "agent_error"


@pytest.mark.parametrize("category", [None, *RolloutErrorCategory])
def test_no_category_of_a_workflow_excuses_by_itself(
    category: RolloutErrorCategory | None,
) -> None:
    said = ExecutionResult(status=RolloutStatus.FAILURE, err_category=category)
    kept = believed(said, service_failed=False, workflow_rewards=True).err_category
    assert kept is None or not kept.may_run_again
    assert kept is category or (category is not None and category.may_run_again)
