"""The judge: a model for graders, on every backend, recorded apart from the policy's."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from local_backend import LocalBackend
from osmosis_ai.rollout import ExecutionBackend, ExecutionOutcome, ExecutionRequest
from osmosis_ai.rollout.context import get_rollout_context
from tests.harbor_backend.rollouts.conftest import MakeBackend

AGENT, GRADER = "adversary:Answer", "adversary:AskJudge"
JUDGE = "embedded/echo"


@pytest.fixture(
    params=[
        "local",
        pytest.param("fresh", marks=pytest.mark.docker),
        pytest.param("shared", marks=pytest.mark.docker),
    ]
)
async def make(
    request: pytest.FixtureRequest, make_backend: MakeBackend, artifact_root: Path, project: Path
) -> AsyncIterator[Any]:
    """Makes the backend of one kind, with or without a judge."""
    made: list[ExecutionBackend] = []

    def build(**arguments: Any) -> ExecutionBackend:
        if request.param == "local":
            made.append(LocalBackend(workflow=AGENT, grader=GRADER, **arguments))
            return made[-1]
        return make_backend(agent=AGENT, grader=GRADER, grader_sandbox=request.param, **arguments)

    yield build
    for backend in made:
        await backend.shutdown()


async def grade(backend: ExecutionBackend) -> ExecutionOutcome:
    prompt = [{"role": "user", "content": "x"}]
    return await backend.execute(ExecutionRequest(id="judged", prompt=prompt, label="4"))


async def test_a_grader_asks_the_judge(make: Any) -> None:
    outcome = await grade(make(judge=JUDGE))
    assert outcome.grader is not None, outcome.workflow
    sample = outcome.grader.sample
    assert sample is not None, outcome.grader
    assert sample.reward == 1.0
    assert sample.metrics == {"said": 2}
    assert sample.extra_fields == {"rollout_id": "judged", "same_route": True}
    assert outcome.grader.extra_fields["judge_calls"]["calls"] == 1
    assert "model_calls" not in outcome.workflow.extra_fields
    assert get_rollout_context() is None


async def test_without_a_judge_there_is_a_context_that_routes_nowhere(make: Any) -> None:
    outcome = await grade(make())
    assert outcome.grader is not None
    assert outcome.grader.sample is not None
    assert outcome.grader.sample.extra_fields == {"rollout_id": "judged", "same_route": False}
    assert "judge_calls" not in outcome.grader.extra_fields


async def test_a_key_needs_its_model(make: Any) -> None:
    with pytest.raises(ValueError, match="judge_api_key"):
        make(judge_api_key="sk-1")
