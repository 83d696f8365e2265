"""The job beside a run, and Harbor's own commands that go on with it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harbor.models.job.result import JobResult
from harbor.models.trial.result import TrialResult

from osmosis_ai.cli.trials.choices import EnvironmentName, Keep
from osmosis_ai.cli.trials.job import JobRecorder
from osmosis_ai.cli.trials.plan import Plan, Trial
from osmosis_ai.cli.trials.results import TrialReport, trial_report
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionResult
from osmosis_ai.rollout.types.status import RolloutStatus

from .conftest import Osmosis

TRIAL = Trial("add", 1, "add-1-abc")


def make_plan(folder: Path, output: Path, *, agent: str = "nop", model: str | None = None) -> Plan:
    (folder / "tasks" / "add").mkdir(parents=True, exist_ok=True)
    return Plan(
        tasks_dir=folder / "tasks",
        tasks=("add",),
        fetched={},
        problems={},
        agent=agent,
        grader=None,
        model=model,
        environment=EnvironmentName.DOCKER,
        remote=None,
        n_concurrent=1,
        attempts=1,
        threshold=None,
        keep=Keep.NONE,
        force_build=False,
        output=output,
        write_report=True,
    )


def report(
    *, reward: float | None, category: str | None = None, rewards: dict[str, Any] | None = None
) -> TrialReport:
    outcome = ExecutionOutcome(workflow=ExecutionResult(status=RolloutStatus.SUCCESS))
    return replace(
        trial_report(TRIAL, outcome, 2.0),
        status="success" if category is None else "failure",
        category=category,
        message=None if category is None else "it broke",
        phase="agent",
        reward=reward,
        rewards=rewards or {},
    )


def written(job: Path) -> TrialResult:
    """The trial's result as Harbor reads it."""
    return TrialResult.model_validate_json((job / TRIAL.rollout_id / "result.json").read_text())


@pytest.mark.parametrize(
    ("reward", "category", "rewards", "error"),
    [
        (0.5, None, {"reward": 0.5}, None),
        (0.5, "timeout", {"reward": 0.5}, "AgentTimeoutError"),
        (None, "timeout", None, "AgentTimeoutError"),
        (None, "infrastructure_error", None, "InfrastructureError"),
    ],
)
async def test_each_outcome_is_a_trial(
    tmp_path: Path,
    reward: float | None,
    category: str | None,
    rewards: dict[str, float] | None,
    error: str | None,
) -> None:
    job = JobRecorder(make_plan(tmp_path, tmp_path / "job"), "openai/some")
    await job.begin([TRIAL])
    await job.add(report(reward=reward, category=category), None)
    await job.close()
    trial = written(tmp_path / "job")
    assert (trial.verifier_result and trial.verifier_result.rewards) == rewards
    assert (trial.exception_info and trial.exception_info.exception_type) == error


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"score": 0.25, "why": "text", "part": float("nan")}, {"score": 0.25}),
        ({"why": "text"}, {"reward": 1.0}),
    ],
)
async def test_rewards_are_numbers(
    tmp_path: Path, given: dict[str, Any], kept: dict[str, float]
) -> None:
    job = JobRecorder(make_plan(tmp_path, tmp_path / "job"), "openai/some")
    await job.begin([TRIAL])
    await job.add(report(reward=1.0, rewards=given), None)
    verified = written(tmp_path / "job").verifier_result
    assert verified is not None
    assert verified.rewards == kept


@pytest.mark.parametrize(
    ("agent", "model", "named"),
    [
        ("nop", None, None),
        ("terminus-2", "http://user:secret@127.0.0.1:1/v1?key=secret", "openai/some"),
        ("mine:Solve", "http://user:secret@127.0.0.1:1/v1?key=secret", None),
        ("mine:Solve", "embedded/echo", "embedded/echo"),
    ],
)
async def test_the_agent_and_its_model_without_a_secret(
    tmp_path: Path, agent: str, model: str | None, named: str | None
) -> None:
    plan = make_plan(tmp_path, tmp_path / "job", agent=agent, model=model)
    await JobRecorder(plan, "openai/some").begin([TRIAL])
    text = (tmp_path / "job" / "config.json").read_text()
    assert "secret" not in text
    (config,) = json.loads(text).get("agents") or [{"name": "nop"}]
    assert (config["name"], config.get("model_name")) == (agent, named)


async def test_a_directory_of_somebody_else_is_said_once_and_raises_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "config.json").write_text("{}")
    job = JobRecorder(make_plan(tmp_path, tmp_path), "openai/some")
    await job.begin([TRIAL])
    await job.add(report(reward=1.0), None)
    await job.close()
    said = capsys.readouterr().err
    assert said.count("no complete job directory") == 1
    assert "choose another directory" in said
    assert len(caplog.records) == 1
    assert (tmp_path / "config.json").read_text() == "{}"


async def test_trials_that_cannot_be_written_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    job = JobRecorder(make_plan(tmp_path, tmp_path / "job"), "openai/some")
    await job.begin([TRIAL])
    (tmp_path / "job" / TRIAL.rollout_id).write_text("a file where a directory belongs")
    await job.add(report(reward=1.0), None)
    await job.add(report(reward=1.0), None)
    await job.close()
    assert "add-1-abc is not in the job" in (said := capsys.readouterr().err)
    assert "(and 1 more)" in said
    assert len(caplog.records) == 1


# Harbor's environment waits for a container to end by itself; this one has no reason to.
AT_ONCE = "FROM python:3.12-slim\nSTOPSIGNAL SIGKILL\n"
SEPARATE = """\
artifacts = ["/app/answer"]
[verifier]
environment_mode = "separate"
"""


@pytest.mark.docker
def test_harbors_own_commands_go_on_with_a_run(osmosis: Osmosis, tmp_path: Path) -> None:
    task, output = tmp_path / "tasks" / "answer", tmp_path / "jobs" / "mine"
    for name, text in {
        "task.toml": SEPARATE,
        "instruction.md": "Answer.\n",
        "environment/Dockerfile": f"{AT_ONCE}WORKDIR /app\n",
        "solution/solve.sh": "echo 42 > /app/answer\n",
        "tests/Dockerfile": f"{AT_ONCE}COPY . /tests\n",
        "tests/test.sh": "cat /app/answer > /logs/verifier/reward.txt\n",
    }.items():
        path = task / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    arguments = ("--agent", "oracle", "--attempts", "2", "--output", output)
    assert osmosis("trials", "run", task.parent, *arguments).code == 0
    one, two = sorted(path for path in output.iterdir() if path.is_dir())
    shutil.rmtree(two)  # as if it had been interrupted

    def harbor(job: Path, *words: str | Path) -> JobResult:
        command = [sys.executable, "-m", "harbor.cli.main", "job", *map(str, words)]
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # no network
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return JobResult.model_validate_json((job / "result.json").read_text())

    resumed = harbor(output, "resume", "-p", output)
    (group,) = resumed.stats.evals.values()
    assert (resumed.stats.n_completed_trials, group.metrics) == (2, [{"mean": 42.0}])
    assert one.is_dir()
    (task / "tests" / "test.sh").write_text("echo 7 > /logs/verifier/reward.txt\n")
    again = ("--job-name", "again", "-o", output.parent)
    regraded = harbor(output.parent / "again", "regrade", output, "-p", task, *again)
    (group,) = regraded.stats.evals.values()
    assert (group.n_errors, group.metrics) == (0, [{"mean": 7.0}])
