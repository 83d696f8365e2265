"""A job directory by what Harbor's own models, viewer and commands make of it."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi.testclient import TestClient
from harbor.job import Job
from harbor.models.job.config import JobConfig
from harbor.models.job.lock import JobLock, TrialLock
from harbor.models.job.result import JobResult
from harbor.models.trajectories import Trajectory
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.result import ModelInfo, TrialResult
from harbor.utils.traces_utils import export_traces
from harbor.viewer.server import create_app

from harbor_backend.jobs.directory import JobConflictError, JobDirectory
from harbor_backend.jobs.values import JobDescription, TrialEnd, TrialError
from tests.harbor_backend import reports

from .made import CALLS, WORKFLOW_JOB, leave_files, leave_trajectory, make_job, read, write_task
from .made import recorded as recorded_by_harbor

NATIVE_JOB = JobDescription(agent="nop", is_native=True)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Of one task: scored, scored although its agent failed, and without a result."""
    path, task = tmp_path / "jobs" / "mine", write_task(tmp_path)
    for name in ("scored", "late"):
        leave_trajectory(path, name)
    late = reports.error("WorkflowFailedError", message="x" * 5_000_000)
    leave_files(path / "scored", recorded_by_harbor(tmp_path))
    leave_files(path / "late", recorded_by_harbor(tmp_path, exception_info=late))
    lost = TrialError("InfrastructureError", "the engine went away")
    return make_job(
        path,
        [
            TrialEnd("scored", task, {"reward": 1.0, "style": 0.5}, calls=CALLS),
            TrialEnd("late", task, {"reward": 0.0}, TrialError("AgentTimeoutError", "late")),
            TrialEnd("lost", task, error=lost, seconds=3.0),
        ],
    )


def test_harbors_models_read_all_of_it(job: Path) -> None:
    result = JobResult.model_validate(read(job / "result.json"))
    stats = result.stats
    assert (result.n_total_trials, stats.n_completed_trials, stats.n_errored_trials) == (3, 3, 2)
    assert result.finished_at is not None
    (group,) = stats.evals.values()
    assert (group.n_trials, group.metrics) == (2, [{"reward": 0.5, "style": 0.25}])
    assert group.exception_stats == {"AgentTimeoutError": ["late"], "InfrastructureError": ["lost"]}
    assert JobConfig.model_validate(read(job / "config.json")).n_attempts == 3
    assert len(JobLock.model_validate(read(job / "lock.json")).trials) == 3
    for name in ("scored", "late", "lost"):
        TrialConfig.model_validate(read(job / name / "config.json"))
        TrialLock.model_validate(read(job / name / "lock.json"))
    Trajectory.model_validate(read(job / "scored" / "agent" / "trajectory.json"))


def test_a_trial_says_what_the_engine_says(job: Path) -> None:
    scored, late, lost = (
        TrialResult.model_validate(read(job / name / "result.json"))
        for name in ("scored", "late", "lost")
    )
    assert scored.verifier_result is not None
    assert scored.verifier_result.rewards == {"reward": 1.0, "style": 0.5}
    assert scored.agent_info.name == "mine:Solve"
    assert scored.agent_info.model_info == ModelInfo(name="small", provider="lab")
    assert scored.agent_result is not None
    used = scored.agent_result
    assert (used.n_input_tokens, used.n_output_tokens, used.cost_usd) == (3, 2, 0.5)
    assert used.rollout_details == [
        {
            "prompt_token_ids": [[1, 2, 3]],
            "completion_token_ids": [[4, 5]],
            "logprobs": [[-0.5, -0.25]],
        }
    ]
    assert scored.agent_execution == reports.timing(20, 25)
    assert late.reward_valid
    assert late.exception_info is not None
    assert len(late.exception_info.exception_message) < 101_000
    assert late.agent_result is not None  # by its trajectory
    assert late.agent_result.n_input_tokens == 3
    assert lost.verifier_result is None
    assert lost.exception_info is not None
    assert lost.exception_info.exception_message == "the engine went away"
    assert (job / "lost" / "exception.txt").read_text().startswith("InfrastructureError: ")


def test_harbors_viewer_shows_it(job: Path) -> None:
    viewer = TestClient(create_app(job.parent))

    def get(path: str) -> Any:
        answer = viewer.get(f"/api/{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    (summary,) = get("jobs")["items"]
    assert (summary["name"], summary["n_total_trials"]) == ("mine", 3)
    assert (summary["agents"], summary["models"]) == (["mine:Solve"], ["small"])
    (task,) = get("jobs/mine/tasks")["items"]
    assert (task["task_name"], task["n_trials"], task["n_completed"]) == ("add", 3, 3)
    trials = {trial["name"]: trial for trial in get("jobs/mine/trials")["items"]}
    assert {name: trial["reward"] for name, trial in trials.items()} == {
        "scored": 1.0,
        "late": 0.0,
        "lost": None,
    }
    one = "jobs/mine/trials/scored"
    assert get(f"{one}/trajectory")["steps"][-1]["message"] == "3"
    assert get(f"{one}/agent-logs")["commands"] == [{"index": 0, "content": "hello\n"}]
    artifacts = get(f"{one}/artifacts")
    assert artifacts["manifest"][0]["status"] == "ok"
    assert "logs/artifacts/answer.txt" in {file["path"] for file in artifacts["files"]}
    assert len(get("compare?job=mine&job=mine")["tasks"]) == 1


def test_what_was_there_stays_and_nothing_is_stored_twice(job: Path) -> None:
    trial = job / "scored"
    for old, new in [
        ("logs/agent/workflow.log", "agent/workflow.log"),
        ("logs/verifier/reward.txt", "verifier/reward.txt"),
        ("artifacts/answer.txt", "artifacts/logs/artifacts/answer.txt"),
        ("trajectory.json", "agent/trajectory.json"),
    ]:
        assert (trial / old).samefile(trial / new)


class Dataset(list[dict[str, Any]]):
    """A double of ``datasets.Dataset``, a package that is large and only collects rows here."""

    @classmethod
    def from_list(cls, rows: list[dict[str, Any]]) -> "Dataset":
        return cls(rows)


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], list[Any]]:
    """What ``harbor traces export`` makes of a job."""
    double = ModuleType("datasets")
    double.__dict__.update(Dataset=Dataset, concatenate_datasets=None)
    monkeypatch.setitem(sys.modules, "datasets", double)
    return lambda path: list(export_traces(path, use_rich_progress=False))


def test_every_trajectory_is_exported_once(job: Path, traces: Callable[[Path], list[Any]]) -> None:
    exported = traces(job)
    assert {row["trial_name"]: row["result"] for row in exported} == {
        "scored": "1.0",
        "late": "AgentTimeoutError",
    }
    assert [row["conversations"][-1]["content"] for row in exported] == ["3", "3"]


def test_a_native_agents_trajectory_is_exported_once(
    tmp_path: Path, traces: Callable[[Path], list[Any]]
) -> None:
    task, path = write_task(tmp_path), tmp_path / "job"
    leave_trajectory(tmp_path, "own")
    own = (tmp_path / "own" / "trajectory.json").read_text()
    files = {"logs/agent/trajectory.json": own}
    leave_files(path / "one", recorded_by_harbor(tmp_path, agent="terminus-2"), files)
    about = JobDescription(agent="terminus-2", is_native=True)
    make_job(path, [TrialEnd("one", task, {"reward": 1.0})], about)
    assert [row["trial_name"] for row in traces(path)] == ["one"]
    assert (path / "one" / "agent" / "trajectory.json").read_text() == own


async def test_harbors_own_job_takes_a_finished_one_for_finished(job: Path) -> None:
    config = JobConfig.model_validate(read(job / "config.json"))
    again = await Job.create(config)
    result = await again.run()
    assert again.is_resuming
    assert (result.n_total_trials, result.stats.n_completed_trials) == (3, 3)
    assert {one.name for one in job.iterdir() if one.is_dir()} == {"scored", "late", "lost"}


def test_an_interrupted_job_is_readable_and_goes_on(tmp_path: Path) -> None:
    task, path = write_task(tmp_path), tmp_path / "job"
    ends = [TrialEnd(f"trial-{n}", task, {"reward": 1.0}) for n in range(3)]
    begun = JobDirectory(path, WORKFLOW_JOB)
    begun.begin([task, task])
    begun.add(ends[0])
    begun.close()
    first = JobResult.model_validate(read(path / "result.json"))
    assert (first.finished_at, first.stats.n_pending_trials) == (None, 1)
    make_job(path, ends[1:])
    both = JobResult.model_validate(read(path / "result.json"))
    assert (both.id, both.stats.n_completed_trials) == (first.id, 3)
    assert both.finished_at is not None


@pytest.mark.parametrize("content", ["{}", "[]", "no json", '{"name": "somebody else\'s"}'])
@pytest.mark.parametrize("name", ["config.json", "result.json", "lock.json"])
def test_files_of_somebody_else_are_left_alone(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(JobConflictError, match="another directory"):
        JobDirectory(tmp_path, WORKFLOW_JOB)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == content


def test_a_job_of_another_agent_is_left_alone(job: Path) -> None:
    with pytest.raises(JobConflictError, match="other agents"):
        JobDirectory(job, NATIVE_JOB)


def test_a_trial_that_cannot_be_written_leaves_the_others(tmp_path: Path) -> None:
    task, path = write_task(tmp_path), tmp_path / "job"
    job = JobDirectory(path, WORKFLOW_JOB)
    job.begin([task, task])
    (path / "broken").write_text("a file where a directory belongs")
    with pytest.raises(OSError, match="broken"):
        job.add(TrialEnd("broken", task, {"reward": 1.0}))
    job.add(TrialEnd("whole", task, {"reward": 1.0}))
    job.close()
    result = JobResult.model_validate(read(path / "result.json"))
    assert (result.stats.n_completed_trials, result.stats.n_pending_trials) == (1, 1)
    assert result.finished_at is None
