"""Ids and prompts that are not what one expects."""

from pathlib import Path

import pytest

from tests.harbor_backend.rollouts.acting import said, shell
from tests.harbor_backend.rollouts.conftest import DATASET, MakeBackend, MakeTask, run

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("rollout_id", ["ünï-日本", "a b$HOME`id`'\"", "-rf", "x" * 200, "$$"])
async def test_strange_ids(
    make_backend: MakeBackend, make_task: MakeTask, artifact_root: Path, rollout_id: str
) -> None:
    backend = make_backend(agent="adversary:Act", grader="adversary:LookAround")
    outcome = await run(backend, rollout_id, **shell("touch /logs/artifacts/here"))
    assert outcome.result.status == "success", outcome.result
    assert (artifact_root / rollout_id / "artifacts" / "here").exists()


async def test_strange_ids_in_a_task_of_several_services(make_backend: MakeBackend) -> None:
    backend = make_backend(agent="nop", tasks_dir=DATASET, task_mode="dataset")
    outcome = await run(backend, "a $$ ${HOME} '\"", metadata={"harbor_task_id": "kv-migrate"})
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 0.0


async def test_a_large_prompt_goes_in(make_backend: MakeBackend) -> None:
    text = "x" * 20_000_000
    prompt = [{"role": "user", "content": f"{text}\n```sh\necho fine\n```\n"}]
    backend = make_backend(agent="adversary:Act", max_result_bytes=64 * 1024**2)
    assert said(await run(backend, prompt=prompt)) == "fine\n"
