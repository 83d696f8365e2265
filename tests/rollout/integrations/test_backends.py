"""Both integrations on both backends, through the gateway to the embedded policy."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from local_backend import LocalBackend
from osmosis_ai.gateway import Gateway
from osmosis_ai.rollout import ExecutionOutcome, ExecutionRequest, RolloutContext, RolloutStatus

ROOT = Path(__file__).parents[3]
TEMPLATE = ROOT / "tasks" / "multiply"
OPENAI_AGENTS = ROOT / "tests" / "projects" / "openai_agents"
STRANDS = ROOT / "osmosis_ai" / "templates" / "rollouts" / "multiply-harbor-strands"

PROMPT = [
    {"role": "system", "content": "Answer with one line: #### <number>"},
    {"role": "user", "content": "What is 12 x 34?"},
]
PATHS: dict[str, dict[str, Any]] = {
    "openai_agents": {
        "workflow": "products:ProductsWorkflow",
        "workflow_config": "products:products",
        "grader": "products:ProductsGrader",
    },
    "openai_agents_streamed": {
        "workflow": "products:ProductsWorkflow",
        "workflow_config": "products:streamed_products",
        "grader": "products:ProductsGrader",
    },
    "strands": {
        "workflow": "multiply:MultiplyWorkflow",
        "workflow_config": "multiply:multiply_config",
        "grader": "grader:MultiplyGrader",
    },
}
ROLES = ["system", "user", "assistant", "tool", "assistant"]


@pytest.fixture(autouse=True)
def projects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both projects, importable."""
    monkeypatch.syspath_prepend(str(OPENAI_AGENTS))
    monkeypatch.syspath_prepend(str(STRANDS))


def request() -> ExecutionRequest:
    return ExecutionRequest(id=f"integration-{uuid.uuid4().hex}", prompt=PROMPT, label="408")


def assert_solved(outcome: ExecutionOutcome) -> None:
    assert outcome.result.status is RolloutStatus.SUCCESS, outcome.result.err_message
    sample = outcome.result.sample
    assert sample is not None
    assert sample.reward == 1.0
    messages = sample.trajectory_messages
    assert messages is not None
    assert [message["role"] for message in messages] == ROLES
    assert messages[0]["content"].endswith(PROMPT[0]["content"])
    assert messages[2]["tool_calls"][0]["function"]["name"] == "multiply"
    assert messages[3]["content"] == "408"


@pytest.mark.parametrize("kind", PATHS)
async def test_local(kind: str, artifact_root: Path) -> None:
    async with Gateway() as gateway:
        asked = request()
        async with gateway.open(asked.id, "embedded/multiply") as endpoint:
            with RolloutContext(endpoint.url, endpoint.token, asked.id):
                outcome = await LocalBackend(**PATHS[kind]).execute(asked)
            assert_solved(outcome)
            assert endpoint.summary().calls == 2


async def test_many_local_rollouts_at_once_keep_apart(artifact_root: Path) -> None:
    backend = LocalBackend(**PATHS["openai_agents"])

    async def solve(gateway: Gateway, a: int) -> ExecutionOutcome:
        prompt = [{"role": "user", "content": f"What is {a} x 3?"}]
        asked = ExecutionRequest(id=f"many-{a}", prompt=prompt, label=str(a * 3))
        async with gateway.open(asked.id, "embedded/multiply?latency_ms=5") as endpoint:
            with RolloutContext(endpoint.url, endpoint.token, asked.id):
                return await backend.execute(asked)

    async with Gateway() as gateway:
        outcomes = await asyncio.gather(*(solve(gateway, a) for a in range(10, 40)))
    for a, outcome in zip(range(10, 40), outcomes, strict=True):
        sample = outcome.result.sample
        assert outcome.result.status is RolloutStatus.SUCCESS, outcome.result.err_message
        assert sample is not None
        assert sample.reward == 1.0
        assert sample.messages[0]["content"] == f"What is {a} x 3?"


@pytest.mark.docker
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["openai_agents_streamed", "strands"])
async def test_harbor(kind: str, artifact_root: Path) -> None:
    """In a container without a network, from a runtime built for the project."""
    arguments = dict(PATHS[kind])
    arguments["agent"] = arguments.pop("workflow")
    backend = HarborBackend(
        orchestrator=TrialQueue(n_concurrent=1), tasks_dir=TEMPLATE, **arguments
    )
    try:
        asked = request()
        with RolloutContext("embedded/multiply", "k", asked.id):
            outcome = await backend.execute(asked)
    finally:
        await backend.shutdown()
    assert_solved(outcome)
