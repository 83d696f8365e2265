"""Harbor's own agents, run in containers without network against the embedded policy."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from osmosis_ai.gateway import Gateway
from osmosis_ai.rollout import ExecutionOutcome, ExecutionRequest, RolloutContext, RolloutStatus
from osmosis_ai.rollout.types.status import RolloutErrorCategory
from tests.harbor_backend.conftest import own_containers

# Building an image with an agent in it takes minutes where nothing is cached.
pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

TASKS = Path(__file__).parent / "tasks"
REAL_KEY = "sk-the-operators-own-key"
AGENTS = ["mini-swe-agent", "terminus-2", "opencode"]


class Run:
    """Runs tasks with native agents; ``token`` is the last rollout's endpoint's."""

    def __init__(self, trials_dir: Path) -> None:
        self.trials_dir = trials_dir
        self.token = ""

    async def __call__(
        self,
        agent: str,
        task: str,
        *,
        url: str | None = "embedded/shell",
        timeout_sec: float | None = None,
        **options: Any,
    ) -> ExecutionOutcome:
        backend = HarborBackend(
            orchestrator=TrialQueue(n_concurrent=1),
            tasks_dir=TASKS,
            task_mode="dataset",
            agent=agent,
            trials_dir=self.trials_dir,
            **({"cleanup_successful_trials": False} | options),
        )
        request = ExecutionRequest(
            id=f"native-{task}",
            metadata={"harbor_task_id": task},
            label="blue",
            agent_timeout_sec=timeout_sec,
        )
        try:
            if url is None:
                return await backend.execute(request)
            async with Gateway() as gateway, gateway.open(request.id, url, REAL_KEY) as endpoint:
                self.token = endpoint.token
                with RolloutContext(endpoint=endpoint):
                    return await backend.execute(request)
        finally:
            await backend.shutdown()


@pytest.fixture
def run(tmp_path: Path, artifact_root: Path, engine: Any) -> Iterator[Run]:
    """Runs one task; no container stays."""
    yield Run(tmp_path / "trials")
    assert own_containers(engine) == []


def commands(outcome: ExecutionOutcome) -> list[str]:
    """What the agent ran, as its sample tells it."""
    assert outcome.result.sample is not None
    calls = [
        json.loads(call["function"]["arguments"])
        for message in outcome.result.sample.messages
        for call in message.get("tool_calls", [])
    ]
    return [call.get("command", call.get("keystrokes", "")).strip() for call in calls]


@pytest.mark.parametrize("agent", AGENTS)
async def test_an_agent_solves_its_task_and_its_trajectory_is_the_sample(
    run: Run, agent: str, tmp_path: Path, artifact_root: Path
) -> None:
    outcome = await run(agent, agent)

    assert outcome.result.err_message is None
    assert outcome.workflow.extra_fields["notes"] == []
    sample = outcome.result.sample
    assert sample is not None
    assert sample.reward == 1.0
    assert sample.label == "blue"
    assert commands(outcome)[0] == "printf 'blue\\n' > /app/colour.txt; env"
    asked = next(message for message in sample.messages if message["role"] == "user")
    assert "Write the word `blue`" in str(asked["content"])
    assert sample.extra_fields["agent"]["name"] == agent
    calls = outcome.workflow.extra_fields["model_calls"]
    assert calls["errors"] == 0
    assert sample.metrics["input_tokens"] == calls["prompt_tokens"] > 0
    assert sample.metrics["output_tokens"] == calls["completion_tokens"] > 0
    # Every result names the call that it answers.
    assert all("tool_call_id" in turn for turn in sample.messages if turn["role"] == "tool")
    # The command printed its environment, and nobody but the gateway redacts these two.
    assert "PATH=" in sample.model_dump_json()
    files = [*(tmp_path / "trials").rglob("*"), *artifact_root.rglob("*")]
    written = {path: path.read_bytes() for path in files if path.is_file()}
    assert any(b"PATH=" in data for data in written.values())
    for secret in (REAL_KEY, run.token):
        assert [path for path, data in written.items() if secret.encode() in data] == []


async def test_arguments_and_the_rollouts_model_reach_the_agent(run: Run, tmp_path: Path) -> None:
    outcome = await run(
        "terminus-2",
        "terminus-2",
        native_agent_kwargs={"max_turns": 1, "api_base": "http://public.invalid/v1"},
        model_name="openai/some-policy",
    )
    assert outcome.result.sample is not None
    assert outcome.result.sample.reward == 1.0
    assert len(commands(outcome)) == 1
    assert outcome.result.sample.extra_fields["agent"]["model_name"] == "openai/some-policy"
    (config,) = (tmp_path / "trials").glob("*/config.json")
    assert "public.invalid" not in config.read_text()


async def test_without_a_chat_url_no_sandbox_is_made(run: Run, tmp_path: Path) -> None:
    outcome = await run("mini-swe-agent", "mini-swe-agent", url=None)
    assert outcome.workflow.status is RolloutStatus.FAILURE
    assert outcome.workflow.err_category is RolloutErrorCategory.VALIDATION_ERROR
    assert "has no chat_completions_url" in str(outcome.workflow.err_message)
    assert not (tmp_path / "trials").exists()


async def test_an_image_without_the_agent_says_what_is_missing(run: Run) -> None:
    outcome = await run("mini-swe-agent", "without-agent")
    assert outcome.workflow.status is RolloutStatus.FAILURE
    assert outcome.workflow.sample is None
    assert "RUN pip install mini-swe-agent" in str(outcome.workflow.err_message)


async def test_a_deadline_ends_an_agent_that_waits_for_its_model(run: Run) -> None:
    """It left nothing, which the task's tests say; its failure stands beside that."""
    url = "embedded/shell?latency_ms=120000"
    outcome = await run("mini-swe-agent", "mini-swe-agent", url=url, timeout_sec=8)
    for result in (outcome.workflow, outcome.result):
        assert result.status is RolloutStatus.SUCCESS
        assert result.err_category is RolloutErrorCategory.TIMEOUT
    assert outcome.result.is_scored
    assert outcome.result.sample is not None
    assert outcome.result.sample.reward == 0.0


async def test_several_trajectories_make_no_sample_and_keep_the_logs(
    run: Run, tmp_path: Path, artifact_root: Path
) -> None:
    outcome = await run("mini-swe-agent", "two-steps", cleanup_successful_trials=True)
    assert outcome.workflow.status is RolloutStatus.SUCCESS
    assert outcome.workflow.sample is None
    assert outcome.grader is not None
    assert outcome.grader.sample is not None
    assert outcome.grader.sample.reward == 1.0
    (note,) = outcome.workflow.extra_fields["notes"]
    assert "the trial has 2" in note
    for step in ("first", "second"):
        name = f"steps/{step}/agent/trajectory.json"
        assert list((tmp_path / "trials").glob(f"*/{name}"))
        assert (artifact_root / "native-two-steps" / "logs" / name).is_file()
