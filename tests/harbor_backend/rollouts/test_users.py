"""Whom commands run as: the image's user, the task's, and none that the image does not have."""

import json
from pathlib import Path

import pytest

from osmosis_ai.rollout import RolloutContext
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.rollouts.acting import said, shell
from tests.harbor_backend.rollouts.conftest import MakeBackend, MakeTask, run

pytestmark = pytest.mark.docker

SECRET = "sk-never-to-be-seen-5471"
OTHER_USER = f"""FROM {BASE_IMAGE}
RUN useradd -m -u 1500 worker \\
    && printf '#!/bin/sh\\nexec "$@"\\n' > /entry && chmod 755 /entry
WORKDIR /app
ENTRYPOINT ["/entry"]
USER worker
"""


async def test_an_image_whose_entry_point_needs_its_user(
    make_backend: MakeBackend, make_task: MakeTask, artifact_root: Path
) -> None:
    """Workflow and grader run beside it, as the image's user."""
    task = make_task(dockerfile=OTHER_USER)
    backend = make_backend(agent="adversary:Act", grader="adversary:LookAround", tasks_dir=task)
    outcome = await run(
        backend, **shell("id -un; pwd; echo 'by the agent' > /logs/artifacts/seen.txt")
    )
    assert said(outcome) == "worker\n/app\n"
    assert outcome.grader is not None
    assert outcome.grader.sample is not None, outcome.grader
    assert outcome.grader.sample.extra_fields["artifact"] == "by the agent\n"
    assert outcome.grader.sample.reward == 1.0


async def test_a_grader_without_root_reads_and_writes_artifacts(
    make_backend: MakeBackend, make_task: MakeTask, artifact_root: Path
) -> None:
    task = make_task(dockerfile=f"FROM {BASE_IMAGE}\nRUN useradd -m worker\nUSER worker\n")
    backend = make_backend(agent="adversary:Act", grader="adversary:LookAround", tasks_dir=task)
    command = "umask 077; echo x > /logs/artifacts/seen.txt; mkdir -p /logs/artifacts/d; id -un"
    outcome = await run(backend, **shell(command))
    assert said(outcome) == "worker\n"
    assert outcome.grader is not None
    assert outcome.grader.sample is not None, outcome.grader
    assert outcome.grader.sample.extra_fields["artifact"] == "x\n"


async def test_the_model_is_reached_from_such_an_image_too(
    make_backend: MakeBackend, make_task: MakeTask, policy: tuple[str, list[str]]
) -> None:
    url, keys = policy
    backend = make_backend(agent="adversary:CallModel", tasks_dir=make_task(dockerfile=OTHER_USER))
    with RolloutContext(url, SECRET, "r-1"):
        outcome = await run(backend, grade=False)
    assert json.loads(said(outcome))["said"] == "from the policy"
    assert keys == [f"Bearer {SECRET}"]


async def test_the_agents_user_is_the_tasks(make_backend: MakeBackend, make_task: MakeTask) -> None:
    task = make_task(
        dockerfile=f"FROM {BASE_IMAGE}\nRUN useradd -m worker\n", toml='[agent]\nuser = "worker"\n'
    )
    backend = make_backend(agent="adversary:Act", tasks_dir=task)
    command = "id -un; echo $HOME; touch /logs/artifacts/mine && echo writable; touch /root/x"
    lines = said(await run(backend, **shell(command), grade=False)).splitlines()
    assert lines[:3] == ["worker", "/home/worker", "writable"]
    assert "ermission denied" in lines[3]


async def test_a_user_that_the_image_does_not_have(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    task = make_task(toml='[agent]\nuser = "nobody-here"\n')
    outcome = await run(make_backend(agent="adversary:Act", tasks_dir=task), **shell("true"))
    assert outcome.result.err_category == "validation_error"
    assert "unable to find user nobody-here" in str(outcome.result.err_message)
