"""Where the reward comes from: a task's own tests, an SDK grader, or nowhere."""

import asyncio
from pathlib import Path

import pytest
from harbor.environments.docker.docker import DockerEnvironment as HarborDockerEnvironment
from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.trial.tasks import find_tasks
from osmosis_ai.rollout import ExecutionResult, RolloutContext
from tests.harbor_backend.rollouts.conftest import DATASET, SECRET, MakeBackend, MakeTask, run

pytestmark = pytest.mark.docker


class ElsewhereEnvironment(HarborDockerEnvironment):
    """One of the many environments that Harbor can run and that know nothing of us."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1.0), ("nop", 0.0)])
async def test_the_whole_dataset(make_backend: MakeBackend, agent: str, reward: float) -> None:
    backend = make_backend(agent=agent, tasks_dir=DATASET, task_mode="dataset")
    tasks = find_tasks(DATASET)
    assert len(tasks) >= 6
    outcomes = await asyncio.gather(
        *(run(backend, task, metadata={"harbor_task_id": task}) for task in tasks)
    )
    rewards = {
        task: outcome.result.sample and outcome.result.sample.reward
        for task, outcome in zip(tasks, outcomes, strict=True)
    }
    assert rewards == dict.fromkeys(tasks, reward)
    speed = outcomes[tasks.index("close-pairs")].result.sample
    assert speed is not None
    assert len(speed.extra_fields["rewards"]) > 1


async def test_a_workflow_is_graded_by_the_tasks_tests(
    make_backend: MakeBackend, make_task: MakeTask, artifact_root: Path
) -> None:
    """Its instruction becomes the prompt, and declared artifacts come home."""
    task = make_task(
        toml='artifacts = ["/app/out"]\n',
        instruction="Run:\n```sh\nmkdir /app/out && echo 42 > /app/out/answer; hostname\n```\n",
        tests="echo checked > /logs/verifier/note\n"
        "grep -qx 42 /app/out/answer && echo 1 > /logs/verifier/reward.txt",
    )
    backend = make_backend(
        agent="adversary:Act",
        grader="adversary:LookAround",
        tasks_dir=task.parent,
        task_mode="dataset",
    )
    outcome = await run(backend, metadata={"harbor_task_id": "made"})
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 1.0
    assert outcome.result.sample.extra_fields == {}, "the grader must not have run"
    saved = artifact_root / "r-1"
    assert (saved / "artifacts" / "app" / "out" / "answer").read_text() == "42\n"
    assert (saved / "logs" / "verifier" / "note").read_text() == "checked\n"
    timings = outcome.result.extra_fields["timings_sec"]
    assert {"queued", "environment_setup", "agent", "verifier", "total"} <= timings.keys()


async def test_a_grader_for_a_task_of_several_services(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    task = make_task(toml='[environment]\nnetwork_mode = "public"\n')
    compose = (
        "services:\n  main: {}\n  other:\n    image: python:3.12-slim\n    command: sleep 600\n"
    )
    (task / "environment" / "docker-compose.yaml").write_text(compose)
    backend = make_backend(agent="adversary:Search", grader="adversary:LookAround", tasks_dir=task)
    outcome = await run(backend, prompt=[{"role": "user", "content": '["no-such-", "text"]'}])
    assert outcome.grader is not None, outcome.workflow
    assert outcome.grader.sample is not None
    assert outcome.grader.sample.reward == 1.0
    assert outcome.grader.sample.extra_fields["left_behind"] is False
    assert outcome.grader.extra_fields["environment"] == "docker"


async def test_a_forced_environment_holds_for_the_grader_too(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    backend = make_backend(
        agent="adversary:Search",
        grader="adversary:LookAround",
        tasks_dir=make_task(toml='[environment]\nnetwork_mode = "public"\n'),
        environment_config=EnvironmentConfig(type=EnvironmentType.DOCKER),
    )
    outcome = await run(backend, prompt=[{"role": "user", "content": '["no-such-", "text"]'}])
    assert outcome.grader is not None, outcome.workflow
    assert outcome.grader.sample is not None, outcome.grader
    seen = outcome.grader.sample.extra_fields
    assert (seen["artifact"], seen["left_behind"]) == ("by the agent", False)
    assert outcome.grader.extra_fields["environment"] == "docker"


async def test_an_environment_that_mounts_nothing_has_the_runtime_uploaded(
    make_backend: MakeBackend, make_task: MakeTask, policy: tuple[str, list[str]]
) -> None:
    backend = make_backend(
        agent="adversary:Search",
        grader="adversary:LookAround",
        tasks_dir=make_task(toml='[environment]\nnetwork_mode = "public"\n'),
        environment_config=EnvironmentConfig(import_path=f"{__name__}:ElsewhereEnvironment"),
    )
    prompt = [{"role": "user", "content": '["no-such-", "text"]'}]
    outcome = await run(backend, prompt=prompt)
    assert outcome.grader is not None, outcome.workflow
    assert outcome.grader.sample is not None, outcome.grader
    seen = outcome.grader.sample.extra_fields
    assert (seen["artifact"], seen["left_behind"]) == ("by the agent", False)
    assert outcome.grader.extra_fields["timings_sec"]["runtime_upload"] > 0
    with RolloutContext(policy[0], SECRET, "r-2"):
        refused = await run(backend, "r-2", prompt=prompt)
    assert refused.workflow.err_category == "validation_error"
    assert "has no way to the gateway" in str(refused.workflow.err_message)


@pytest.mark.parametrize(
    ("tests", "text"),
    [
        ("exit 0", "left no reward file"),
        (
            'echo \'{"score": 1, "style": 0}\' > /logs/verifier/reward.json',
            "none of them is called 'reward'",
        ),
        (
            "echo '{\"reward\": 1'$(printf '0%.0s' $(seq 400))'}' > /logs/verifier/reward.json",
            "too large for a float",
        ),
        ("echo NaN > /logs/verifier/reward.txt", "which is no finite number"),
        ("echo perfect > /logs/verifier/reward.txt", "which is no number"),
    ],
)
async def test_tests_without_a_usable_reward(
    make_backend: MakeBackend, make_task: MakeTask, tests: str, text: str
) -> None:
    task = make_task(tests=tests)
    backend = make_backend(agent="nop", tasks_dir=task)
    outcome = await run(backend)
    assert outcome.grader is not None
    assert outcome.grader.err_category == "validation_error"
    assert text in str(outcome.grader.err_message)


async def test_a_verifier_past_its_deadline(make_backend: MakeBackend, make_task: MakeTask) -> None:
    task = make_task(tests="sleep 60")
    outcome = await run(make_backend(agent="nop", tasks_dir=task), grader_timeout_sec=1)
    assert outcome.grader is not None
    assert outcome.grader.err_category == "timeout"


async def test_neither_tests_nor_grader(make_backend: MakeBackend, make_task: MakeTask) -> None:
    backend = make_backend(agent="nop", tasks_dir=make_task())
    graded = await run(backend)
    assert graded.grader is not None
    assert "no grader is configured" in str(graded.grader.err_message)
    ungraded = await run(backend, "r-2", grade=False)
    assert ungraded.grader is None
    assert ungraded.result.status == "success"


async def test_callbacks_come_in_order_and_once(make_backend: MakeBackend) -> None:
    order: list[str] = []

    async def workflow_done(result: ExecutionResult) -> None:
        order.append(f"workflow {result.status}")

    async def grader_done(result: ExecutionResult) -> None:
        order.append(f"grader {result.status}")

    from osmosis_ai.rollout import ExecutionRequest

    backend = make_backend(agent="adversary:Search", grader="adversary:LookAround")
    prompt = [{"role": "user", "content": '["no-such-", "text"]'}]
    request = ExecutionRequest(id="r-1", prompt=prompt, label="4")
    await backend.execute(request, workflow_done, grader_done)
    assert order == ["workflow success", "grader success"]

    async def broken(result: ExecutionResult) -> None:
        raise RuntimeError("the callback broke")

    with pytest.raises(RuntimeError, match="the callback broke"):
        await backend.execute(request, broken)


async def test_prewarm(make_backend: MakeBackend, make_task: MakeTask) -> None:
    good = make_task("good")
    make_task("bad", dockerfile="FROM python:3.12-slim\nRUN false\n")
    backend = make_backend(agent="oracle", tasks_dir=good.parent, task_mode="dataset")
    summary = await backend.prewarm()
    assert (summary["total"], summary["succeeded"], summary["failed"]) == (2, 1, 1)
    assert "does not build" in backend.warmup.failed["bad"]
    assert backend.health()["prewarm"] == summary
    with pytest.raises(RuntimeError, match="No task could be made ready"):
        async with backend.prewarm_lifespan(["bad"])(None):
            pytest.fail("the server must not start")
    assert (await backend.prewarm(prewarm="off"))["total"] == 0
