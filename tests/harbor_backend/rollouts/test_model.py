"""How a sandbox reaches the model, and what it does not get to see."""

import json
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.rollout import RolloutContext
from tests.harbor_backend.rollouts.conftest import DATASET, SECRET, MakeBackend, run

pytestmark = pytest.mark.docker


def _report(outcome: Any) -> dict[str, Any]:
    assert outcome.workflow.sample is not None, outcome.workflow
    found: dict[str, Any] = json.loads(outcome.workflow.sample.messages[-1]["content"])
    return found


async def test_a_sandbox_without_network_and_key(
    make_backend: MakeBackend, policy: tuple[str, list[str]], artifact_root: Path
) -> None:
    url, keys = policy
    backend = make_backend(agent="adversary:CallModel", grader="adversary:LookAround")
    with RolloutContext(url, SECRET, "r-1"):
        outcome = await run(backend)
    report = _report(outcome)
    assert keys == [f"Bearer {SECRET}"]
    assert report["said"] == "from the policy"
    assert report["interfaces"] == ["lo"]
    assert report["url"].startswith("http://127.0.0.1:")
    assert report["key"] != SECRET
    assert outcome.result.extra_fields["model_calls"]["calls"] == 1
    for path in artifact_root.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


async def test_a_compose_task_reaches_the_model_too(
    make_backend: MakeBackend, policy: tuple[str, list[str]]
) -> None:
    url, keys = policy
    backend = make_backend(agent="adversary:CallModel", tasks_dir=DATASET, task_mode="dataset")
    with RolloutContext(url, SECRET, "r-1"):
        outcome = await run(backend, metadata={"harbor_task_id": "kv-migrate"})
    assert _report(outcome)["said"] == "from the policy"
    assert keys == [f"Bearer {SECRET}"]
    assert outcome.result.extra_fields["environment"] == "docker"
    assert outcome.result.sample is not None
    assert outcome.result.sample.reward == 0.0


@pytest.mark.parametrize(("placement", "left_behind"), [("fresh", False), ("shared", True)])
async def test_the_label_is_nowhere_in_the_agents_sandbox(
    make_backend: MakeBackend, placement: str, left_behind: bool
) -> None:
    """And a grader in a sandbox of its own sees nothing of the agent but artifacts."""
    backend = make_backend(
        agent="adversary:Search", grader="adversary:LookAround", grader_sandbox=placement
    )
    halves = json.dumps(["the-secret-", "answer-8271"])
    outcome = await run(
        backend, prompt=[{"role": "user", "content": halves}], label="the-secret-answer-8271"
    )
    assert outcome.workflow.sample is not None
    assert outcome.workflow.sample.messages[-1]["content"] == ""
    assert outcome.grader is not None
    assert outcome.grader.sample is not None
    seen = outcome.grader.sample.extra_fields
    assert seen["label"] == "the-secret-answer-8271"
    assert seen["artifact"] == "by the agent"
    assert seen["left_behind"] is left_behind
