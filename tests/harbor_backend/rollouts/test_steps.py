"""Tasks of several steps."""

import pytest

from tests.harbor_backend.rollouts.acting import said
from tests.harbor_backend.rollouts.conftest import MakeBackend, MakeTask, run

pytestmark = pytest.mark.docker


async def test_steps_are_run_by_a_workflow_and_graded_each(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    task = make_task(
        toml='multi_step_reward_strategy = "mean"\n[[steps]]\nname = "one"\n'
        '[[steps]]\nname = "two"\n',
        instruction=None,
    )
    for name, command in (("one", "echo 1 > /app/one"), ("two", "cat /app/one; touch /app/two")):
        step = task / "steps" / name
        (step / "tests").mkdir(parents=True)
        (step / "instruction.md").write_text(f"```sh\n{command}\n```\n")
        (step / "tests" / "test.sh").write_text(
            f"#!/bin/sh\ntest -e /app/{name} && echo {int(name == 'two')} "
            "> /logs/verifier/reward.txt\n"
        )
    backend = make_backend(agent="adversary:Act", tasks_dir=task.parent, task_mode="dataset")
    outcome = await run(backend, metadata={"harbor_task_id": "made"})
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 0.5
    assert [m["role"] for m in outcome.result.sample.messages] == ["user", "assistant"] * 2
    assert said(outcome) == "1\n"


async def test_steps_are_graded_by_a_grader_in_sandboxes_of_its_own(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    """The agent's sandbox lives until its last step."""
    task = make_task(toml='[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n', instruction=None)
    for name, command in (("one", "echo 1 > /app/one"), ("two", "cat /app/one")):
        (task / "steps" / name).mkdir(parents=True)
        (task / "steps" / name / "instruction.md").write_text(f"```sh\n{command}\n```\n")
    backend = make_backend(
        agent="adversary:Act",
        grader="adversary:LookAround",
        tasks_dir=task.parent,
        task_mode="dataset",
    )
    outcome = await run(backend, metadata={"harbor_task_id": "made"})
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 1.0
    assert said(outcome) == "1\n"


async def test_a_step_whose_agent_failed_is_graded_and_not_forgotten(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    task = make_task(
        toml='multi_step_reward_strategy = "mean"\n[[steps]]\nname = "one"\n'
        '[[steps]]\nname = "two"\n',
        instruction=None,
    )
    for name, command in (("one", "touch /app/one; kill -9 $PPID"), ("two", "touch /app/two")):
        step = task / "steps" / name
        (step / "tests").mkdir(parents=True)
        (step / "instruction.md").write_text(f"```sh\n{command}\n```\n")
        (step / "tests" / "test.sh").write_text(
            f"#!/bin/sh\ntest -e /app/{name} && echo 1 > /logs/verifier/reward.txt\n"
        )
    backend = make_backend(agent="adversary:Act", tasks_dir=task.parent, task_mode="dataset")
    outcome = await run(backend, metadata={"harbor_task_id": "made"})
    result = outcome.result
    assert (result.is_scored, result.err_category) == (True, "agent_error"), result
    assert "exit code 137" in str(result.err_message)
    assert result.sample is not None
    assert result.sample.reward == 1.0
    assert [m["role"] for m in result.sample.messages] == ["user", "assistant"]
