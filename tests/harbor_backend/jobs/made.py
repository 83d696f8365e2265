"""Rollouts that left their files, and the jobs that are made of them."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harbor.models.trial.result import AgentInfo, TrialResult

from harbor_backend.jobs.directory import JobDirectory
from harbor_backend.jobs.values import WORKFLOW, JobDescription, JobTask, TrialEnd
from osmosis_ai.rollout.trajectory.report import LlmCallMetrics
from osmosis_ai.rollout.trajectory.save import save_trajectory
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import RolloutStatus
from tests.harbor_backend import reports

WORKFLOW_JOB = JobDescription(agent="mine:Solve", is_native=False, model="lab/small")
CALLS = [
    LlmCallMetrics(
        prompt_tokens=3,
        completion_tokens=2,
        cached_tokens=1,
        cost_usd=0.5,
        prompt_token_ids=[1, 2, 3],
        completion_token_ids=[4, 5],
        logprobs=[-0.5, -0.25],
        model_name="lab/small",
    )
]


def write_task(folder: Path, name: str = "add", toml: str = "") -> JobTask:
    """A task without anything but its description."""
    task = folder / "tasks" / name
    (task / "environment").mkdir(parents=True)
    (task / "environment" / "Dockerfile").write_text("FROM scratch\n")
    (task / "tests").mkdir()
    (task / "tests" / "test.sh").write_text("exit 0\n")
    (task / "instruction.md").write_text("Add.\n")
    (task / "task.toml").write_text(toml)
    return JobTask(task, "tasks")


def recorded(folder: Path, agent: str = WORKFLOW, **fields: Any) -> TrialResult:
    """Harbor's own record of a trial that came to its verifier."""
    info = AgentInfo(name=agent, version="1")
    times: dict[str, Any] = {"started_at": reports.at(0), "finished_at": reports.at(60)}
    result = reports.trial_result(
        folder, agent_info=info, **times, **reports.reached("verifier"), **fields
    )
    return result.model_copy(update={"task_name": "add"})


def leave_files(
    rollout: Path, result: TrialResult | None, files: Mapping[str, str] | None = None
) -> Path:
    """What the engine archives of a trial, and other ``files`` by their paths."""
    written = {
        "logs/trial.log": "it began\n",
        "logs/agent/workflow.log": "hello\n",
        "logs/verifier/reward.txt": "1\n",
        "artifacts/answer.txt": "3\n",
        **(files or {}),
    }
    if result is not None:
        written["logs/result.json"] = result.model_dump_json()
    for name, content in written.items():
        path = rollout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return rollout


def leave_trajectory(root: Path, name: str, *, reward: float | None = 1.0, **request: Any) -> None:
    """The trajectory and the diagnostics that are saved of a rollout."""
    messages = [{"role": "user", "content": "1 + 2"}, {"role": "assistant", "content": "3"}]
    sample = RolloutSample(messages=messages, trajectory_messages=messages, reward=reward)
    result = ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample)
    saving = save_trajectory(
        rollout_id=name,
        result=result,
        artifact_root=root,
        diagnostics={"backend": "local", "phase": "grader", "timings_sec": {"total": 2.0}},
        llm_calls=CALLS,
        **request,
    )
    saved = asyncio.run(saving)
    assert saved.reason is None


def make_job(path: Path, ends: list[TrialEnd], about: JobDescription = WORKFLOW_JOB) -> Path:
    """A finished job of these trials."""
    job = JobDirectory(path, about)
    job.begin([end.task for end in ends])
    for end in ends:
        job.add(end)
    job.close()
    return path


def read(path: Path) -> Any:
    return json.loads(path.read_text())
