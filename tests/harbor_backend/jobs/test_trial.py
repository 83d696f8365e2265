"""A trial's files in their places, whatever the sandbox left."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from harbor.models.trial.artifact_manifest import ArtifactManifestEntry
from harbor.models.trial.result import TrialResult

from harbor_backend.jobs.values import JobDescription, TrialEnd
from osmosis_ai.common.texts import MAX_ERROR_CHARACTERS
from tests.harbor_backend import reports

from .made import leave_files, leave_trajectory, make_job, read, recorded, write_task

DECLARED = 'artifacts = ["/app/out.txt", "/app/missing.txt", "/logs/metrics", "/data"]\n'


def fifo(path: Path) -> None:
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def secret(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def deep(path: Path) -> None:
    path.write_text("[" * 1_000_000)


def folder(path: Path) -> None:
    path.mkdir()


def other(path: Path) -> None:
    path.write_text('{"steps": "none", "agent": 7}')


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**31)


@pytest.mark.parametrize("hostile", [fifo, loop, secret, deep, folder, other, sparse])
def test_what_is_no_trajectory_reaches_no_tool(
    tmp_path: Path, hostile: Callable[[Path], None]
) -> None:
    task, path = write_task(tmp_path), tmp_path / "job"
    leave_files(path / "one", recorded(tmp_path))
    hostile(path / "one" / "logs" / "agent" / "trajectory.json")
    about = JobDescription(agent="terminus-2", is_native=True)
    make_job(path, [TrialEnd("one", task, {"reward": 1.0})], about)
    agent = path / "one" / "agent"
    assert not os.path.lexists(agent / "trajectory.json")
    assert TrialResult.model_validate(read(path / "one" / "result.json")).reward_valid


def test_a_workflows_own_trajectory_stays_beside_ours(tmp_path: Path) -> None:
    task, path = write_task(tmp_path), tmp_path / "job"
    leave_trajectory(path, "one")
    ours = (path / "one" / "trajectory.json").read_text()
    mine = ours.replace("1 + 2", "something else")
    leave_files(path / "one", recorded(tmp_path), {"logs/agent/trajectory.json": mine})
    make_job(path, [TrialEnd("one", task, {"reward": 1.0})])
    agent = path / "one" / "agent"
    assert (agent / "trajectory.json").read_text() == ours
    assert (agent / "own-trajectory.json").read_text() == mine


def test_artifacts_are_at_their_paths_in_the_sandbox(tmp_path: Path) -> None:
    task, path = write_task(tmp_path, toml=DECLARED), tmp_path / "job"
    files = {
        "artifacts/app/out.txt": "declared",
        "artifacts/app/mine.txt": "the agent's",
        "artifacts/logs/metrics/a.txt": "declared",
        "artifacts/manifest.json": "the agent's",
    }
    leave_files(path / "one", recorded(tmp_path), files)
    (path / "one" / "artifacts" / "empty").mkdir()
    make_job(path, [TrialEnd("one", task, {"reward": 1.0})])
    artifacts = path / "one" / "artifacts"
    own = artifacts / "logs" / "artifacts"
    assert {file.relative_to(own).as_posix() for file in own.rglob("*")} == {
        *("answer.txt", "app", "app/mine.txt", "empty", "manifest.json")
    }
    assert (own / "manifest.json").read_text() == "the agent's"
    entries = map(ArtifactManifestEntry.model_validate, read(artifacts / "manifest.json"))
    assert {entry.source: (entry.destination, entry.type, entry.status) for entry in entries} == {
        "/logs/artifacts": ("artifacts/logs/artifacts", "directory", "ok"),
        "/app/out.txt": ("artifacts/app/out.txt", "file", "ok"),
        "/app/missing.txt": ("artifacts/app/missing.txt", "file", "failed"),
        "/logs/metrics": ("artifacts/logs/metrics", "directory", "ok"),
        "/data": ("artifacts/data", "directory", "failed"),
    }


def test_harbors_own_manifest_wins(tmp_path: Path) -> None:
    task, path = write_task(tmp_path, toml=DECLARED), tmp_path / "job"
    entry = ArtifactManifestEntry(
        source="/data", destination="artifacts/data", type="directory", status="skipped"
    )
    manifest = f"[{entry.model_dump_json()}]"
    leave_files(path / "one", recorded(tmp_path), {"logs/artifacts/manifest.json": manifest})
    make_job(path, [TrialEnd("one", task, {"reward": 1.0})])
    assert read(path / "one" / "artifacts" / "manifest.json") == [entry.model_dump(mode="json")]


def test_steps_keep_their_files_and_their_numbers(tmp_path: Path) -> None:
    task, path = write_task(tmp_path), tmp_path / "job"
    steps = [
        reports.step("first", rewards={"reward": 1.0}),
        reports.step("second", exception_info=reports.error("X", message="y" * 100_000)),
    ]
    files = {
        "logs/steps/first/agent/workflow.log": "step\n",
        "logs/steps/first/verifier/grader.log": "graded\n",
        "logs/steps/first/artifacts/manifest.json": "[]",
    }
    leave_files(path / "one", recorded(tmp_path, step_results=steps), files)
    make_job(path, [TrialEnd("one", task, {"reward": 0.5})])
    step = path / "one" / "steps" / "first"
    assert (step / "agent" / "command-0" / "stdout.txt").read_text() == "step\n"
    assert (step / "verifier" / "test-stdout.txt").read_text() == "graded\n"
    assert (step / "artifacts" / "manifest.json").read_text() == "[]"
    result = TrialResult.model_validate(read(path / "one" / "result.json"))
    assert result.step_results is not None
    assert [one.step_name for one in result.step_results] == ["first", "second"]
    error = result.step_results[1].exception_info
    assert error is not None
    assert len(error.exception_message) == MAX_ERROR_CHARACTERS


def test_an_unreadable_record_of_harbors_is_done_without(tmp_path: Path) -> None:
    task, path = write_task(tmp_path), tmp_path / "job"
    leave_files(path / "one", None, {"logs/result.json": "[" * 100_000})
    make_job(path, [TrialEnd("one", task, {"reward": 1.0}, seconds=7.0)])
    result = TrialResult.model_validate(read(path / "one" / "result.json"))
    assert result.started_at is not None
    assert result.finished_at is not None
    assert (result.finished_at - result.started_at).total_seconds() == 7.0
