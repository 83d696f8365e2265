"""Which task a rollout runs, and those that it cannot."""

import pytest

from tests.harbor_backend.rollouts.conftest import DATASET, MakeBackend, MakeTask, run

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("mode", ["template", "dataset"])
async def test_a_rollouts_own_task_wins(
    make_backend: MakeBackend, make_task: MakeTask, mode: str
) -> None:
    own = make_task(tests="echo 0.25 > /logs/verifier/reward.txt")
    arguments = {"tasks_dir": DATASET} if mode == "dataset" else {}
    backend = make_backend(agent="nop", task_mode=mode, **arguments)
    outcome = await run(backend, metadata={"harbor_task": str(own)})
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 0.25


async def test_damaged_tasks_of_a_dataset(make_backend: MakeBackend, make_task: MakeTask) -> None:
    linked = make_task("linked")
    (linked / "environment" / "data").symlink_to("/etc")
    (make_task("untitled") / "task.toml").unlink()
    backend = make_backend(agent="nop", tasks_dir=linked.parent, task_mode="dataset")
    for name, text in (("linked", "symbolic link"), ("untitled", "no task.toml")):
        outcome = await run(backend, name, metadata={"harbor_task_id": name})
        assert outcome.result.err_category == "validation_error"
        assert text in str(outcome.result.err_message)


async def test_an_outage_of_what_holds_the_task_is_not_the_tasks_fault(
    make_backend: MakeBackend,
) -> None:
    backend = make_backend(agent="nop", tasks_dir=DATASET, task_mode="dataset")
    asked = {"harbor_task": "tasks/one", "git_url": "https://127.0.0.1:9/org/name"}
    outcome = await run(backend, metadata=asked)
    assert outcome.result.err_category == "infrastructure_error"
    assert outcome.result.extra_fields["phase"] == "setup"
    assert "git ls-remote failed" in str(outcome.result.err_message)


@pytest.mark.parametrize("task_id", ["..", ".", "/etc", "a/../../multiply", "link"])
async def test_task_ids_stay_in_their_folder(
    make_backend: MakeBackend, make_task: MakeTask, task_id: str
) -> None:
    folder = make_task().parent
    (folder / "link").symlink_to(DATASET / "log-report")
    backend = make_backend(agent="nop", tasks_dir=folder, task_mode="dataset")
    outcome = await run(backend, metadata={"harbor_task_id": task_id})
    assert outcome.result.err_category == "validation_error"
    assert "leaves tasks_dir" in str(outcome.result.err_message)
