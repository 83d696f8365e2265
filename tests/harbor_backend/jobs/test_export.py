"""Saved rollouts as a job, by the command."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from harbor.models.job.result import JobResult
from harbor.models.trial.result import TrialResult
from harbor.viewer.server import create_app

from osmosis_ai.cli.main import run

from .made import leave_files, leave_trajectory, read, recorded, write_task


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Of a server on LocalBackend: two attempts at one row, and one at another."""
    root = tmp_path / "rollouts"
    for name, row, reward in [("a-1", 1, 1.0), ("a-2", 1, 0.0), ("b-1", 2, None)]:
        leave_trajectory(root, name, reward=reward, request_extra_fields={"row_index": row})
    (root / "unfinished" / "artifacts").mkdir(parents=True)
    return root


def export(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, Any, str]:
    code = run(["trials", "export", "--json", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, json.loads(printed.out) if printed.out else None, printed.err


def test_rollouts_of_a_server(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "jobs" / "mine"
    before = {path: path.read_bytes() for path in saved.rglob("*") if path.is_file()}
    code, document, _ = export(capsys, "--from", saved, "--output", output)
    assert (code, document["trials"], document["problems"]) == (0, ["a-1", "a-2", "b-1"], [])
    assert before == {path: path.read_bytes() for path in saved.rglob("*") if path.is_file()}
    stats = JobResult.model_validate(read(output / "result.json")).stats
    (group,) = stats.evals.values()
    assert (stats.n_completed_trials, group.n_trials, group.metrics) == (3, 2, [{"mean": 0.5}])
    viewer = TestClient(create_app(output.parent))
    tasks = viewer.get("/api/jobs/mine/tasks").json()["items"]
    assert {task["task_name"]: task["n_trials"] for task in tasks} == {"row-1": 2, "row-2": 1}
    steps = viewer.get("/api/jobs/mine/trials/a-1/trajectory").json()["steps"]
    assert steps[-1]["message"] == "3"
    trial = TrialResult.model_validate(read(output / "a-1" / "result.json"))
    assert trial.agent_result is not None
    assert trial.agent_result.rollout_details is not None


def test_rollouts_of_harbor_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, output, task = tmp_path / "rollouts", tmp_path / "job", write_task(tmp_path)
    leave_trajectory(root, "one", request_metadata={"harbor_task_id": "add"})
    leave_files(root / "one", recorded(tmp_path))
    tasks = task.path.parent
    code, _, _ = export(capsys, "--from", root, "--output", output, "--tasks", tasks)
    assert code == 0
    trial = TrialResult.model_validate(read(output / "one" / "result.json"))
    assert (trial.task_name, trial.config.task.path, trial.source) == ("add", task.path, "tasks")
    assert (output / "lock.json").exists()
    assert (output / "one" / "verifier" / "reward.txt").read_text() == "1\n"


def test_a_job_has_one_agent(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_files(saved / "by-workflow", recorded(tmp_path))
    leave_files(saved / "by-oracle", recorded(tmp_path, agent="oracle"))
    output = tmp_path / "job"
    code, _, err = export(capsys, "--from", saved, "--output", output)
    assert (code, output.exists()) == (2, False)
    assert "are of oracle, osmosis-workflow: choose one with --agent" in err
    code, document, _ = export(capsys, "--from", saved, "--output", output, "--agent", "oracle")
    # Who ran those that Harbor never saw is known to nobody.
    assert (code, document["trials"]) == (0, ["a-1", "a-2", "b-1", "by-oracle"])


def test_a_rollout_that_cannot_be_read_leaves_the_others(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (saved / "a-2" / "trajectory.json").write_text("[" * 100_000)
    (saved / "a-1" / "leaves").symlink_to("/etc/passwd")
    code, document, err = export(capsys, "--from", saved, "--output", tmp_path / "job")
    assert (code, document["trials"]) == (1, ["a-1", "b-1"])
    assert "a-2: trajectory.json is not JSON" in err
    assert not (tmp_path / "job" / "a-1" / "leaves").is_symlink()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "nowhere", "--output", "job"), "is no directory"),
        (("--from", ".", "--output", "rollouts"), "is not empty"),
        (("--from", "rollouts", "--output", "job", "--rollout", "x"), "holds no rollout to export"),
        (("--from", "rollouts", "--output", "job", "--rollout", "../x"), "no rollout to export"),
        (("--from", "rollouts", "--output", "job", "--tasks", "nowhere"), "is no directory"),
    ],
)
def test_refusals(
    saved: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = export(capsys, *arguments)
    assert code == 2
    assert said in err
    assert not (tmp_path / "job").exists()
