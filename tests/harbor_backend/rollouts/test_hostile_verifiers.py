"""Tests of a task that leave something else than a reward, and what of it is kept."""

import asyncio
from pathlib import Path

import pytest
from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.places.docker import download
from osmosis_ai.rollout import ExecutionOutcome
from tests.harbor_backend.rollouts.conftest import MakeBackend, MakeTask, run

pytestmark = pytest.mark.docker

GOOD = "echo 1 > /logs/verifier/reward.txt"
NO_REWARD = {
    "sparse": ("truncate -s 100M /logs/verifier/reward.json", "holds 104857600 bytes"),
    "huge": ("printf '{\"reward\": 1%0400d}' 0 > /logs/verifier/reward.json", "too large for a"),
    "deep": ("head -c 60000 /dev/zero | tr '\\0' [ > /logs/verifier/reward.json", "too deeply"),
    "directory": ("mkdir /logs/verifier/reward.txt", "is a directory"),
    "linked": ("ln -s /etc/passwd /logs/verifier/reward.txt", "reward"),
    "pipe": ("mkfifo /logs/verifier/reward.txt", "reward"),
}


async def run_all(
    make_backend: MakeBackend, make_task: MakeTask, **arguments: object
) -> dict[str, ExecutionOutcome]:
    """One rollout of each task: those that leave no reward, and a good one."""
    tests = {name: script for name, (script, _) in NO_REWARD.items()} | {"good": GOOD}
    toml = '[environment]\nnetwork_mode = "public"\n'
    for name, script in tests.items():
        folder = make_task(name, toml=toml, tests=script).parent
    backend = make_backend(agent="nop", tasks_dir=folder, task_mode="dataset", **arguments)
    outcomes = await asyncio.gather(
        *(run(backend, name, metadata={"harbor_task_id": name}) for name in tests)
    )
    return dict(zip(tests, outcomes, strict=True))


@pytest.mark.parametrize("forced", [False, True], ids=["ours", "harbors"])
async def test_each_fails_alone(
    make_backend: MakeBackend, make_task: MakeTask, forced: bool
) -> None:
    harbors = EnvironmentConfig(type=EnvironmentType.DOCKER) if forced else None
    outcomes = await run_all(make_backend, make_task, environment_config=harbors)
    good = outcomes.pop("good").result
    assert good.sample is not None, good
    assert good.sample.reward == 1.0
    for name, outcome in outcomes.items():
        assert outcome.result.err_category == "validation_error", (name, outcome.result)
        assert NO_REWARD[name][1] in str(outcome.result.err_message), name


async def test_what_they_printed_before_their_deadline_is_kept(
    make_backend: MakeBackend, make_task: MakeTask, artifact_root: Path
) -> None:
    task = make_task(tests="echo checked the first; sleep 600")
    outcome = await run(make_backend(agent="nop", tasks_dir=task), grader_timeout_sec=3)
    assert outcome.result.err_category == "timeout"
    (note,) = outcome.result.extra_fields["notes"]
    assert note == (
        "The tests were ended before they finished. The end of their output: checked the first"
    )
    kept = artifact_root / "r-1" / "logs" / "verifier" / "test-stdout.txt"
    assert kept.read_text() == "checked the first\n"


async def test_more_than_is_fetched_costs_no_reward(
    make_backend: MakeBackend,
    make_task: MakeTask,
    artifact_root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(download, "MAX_DOWNLOAD_BYTES", 1024**2)
    task = make_task(
        toml='artifacts = ["/app/out", "/app/large"]\n',
        tests=f"truncate -s 2M /logs/verifier/a.bin; {GOOD}",
        dockerfile="FROM python:3.12-slim\n"
        "RUN mkdir -p /app/out && cd /app && echo whole > out/a && truncate -s 2M out/b large\n",
    )
    outcome = await run(make_backend(agent="nop", tasks_dir=task))
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 1.0
    cut = "was not fetched whole: The sandbox refused: more than 1048576 bytes"
    assert sorted(outcome.result.extra_fields["notes"]) == [
        f"/app/large {cut}",
        f"/app/out {cut}",
        f"/logs/verifier {cut}",
        "Of /logs/verifier the reward alone was read: let tests/test.sh leave less there",
        "The declared artifact /app/large is missing: it was not there when the agent had ended, "
        "or its fetch failed",
        "The declared artifact /app/out was not fetched whole; what came is in "
        "artifacts/app/out.incomplete",
    ]
    kept = artifact_root / "r-1" / "artifacts"
    assert [p.relative_to(kept).as_posix() for p in kept.rglob("*") if p.is_file()] == [
        "app/out.incomplete/a"
    ]


async def test_what_an_agent_put_in_place_of_a_reward_goes(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    task = make_task(
        toml='[environment]\nnetwork_mode = "public"\n',
        tests=GOOD,
        dockerfile="FROM python:3.12-slim\nRUN mkdir -p /logs/verifier/reward.txt/deeper\n",
    )
    outcome = await run(make_backend(agent="nop", tasks_dir=task))
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 1.0


async def test_tests_that_a_separate_image_has_are_those_that_run(
    make_backend: MakeBackend, make_task: MakeTask
) -> None:
    dockerfile = (
        "FROM python:3.12-slim\nRUN mkdir -p /tests && printf '#!/bin/sh\\necho 0.5 > "
        "/logs/verifier/reward.txt\\n' > /tests/test.sh && chmod 755 /tests/test.sh\n"
    )
    task = make_task(
        toml="[verifier]\nenvironment_mode = 'separate'\n",
        tests="echo 0.25 > /logs/verifier/reward.txt",
        tests__Dockerfile=dockerfile,
    )
    outcome = await run(make_backend(agent="nop", tasks_dir=task))
    assert outcome.result.sample is not None, outcome.result
    assert outcome.result.sample.reward == 0.5
