"""Saving: whole files, one log line, never an exception."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from harbor.models.trajectories import Trajectory as HarborTrajectory

from osmosis_ai.rollout import ExecutionResult, RolloutSample, RolloutStatus
from osmosis_ai.rollout.trajectory import save_trajectory

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="osmosis_ai")


def result(sample: RolloutSample | None = None, **fields: Any) -> ExecutionResult:
    return ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample, **fields)


def sample(**fields: Any) -> RolloutSample:
    return RolloutSample(messages=[{"role": "user", "content": "ünïcode"}], **fields)


def ours(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name.startswith("osmosis_ai")]


async def test_a_sample_is_saved(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    saved = await save_trajectory(
        rollout_id="r 1",
        result=result(sample(reward=0.5)),
        request_label="l",
        request_metadata={"row": 1},
        request_extra_fields={"step": 3},
        artifact_root=tmp_path,
        diagnostics={"z": 1, "a": {"path": tmp_path, "inf": float("inf")}},
        llm_calls=[{"prompt_token_ids": [1, 2, 3]}],
    )
    assert saved.path == tmp_path / "r 1" / "trajectory.json"
    assert saved.reason is None
    text = saved.path.read_text(encoding="utf-8")
    document = json.loads(text)
    HarborTrajectory.model_validate(document)
    assert document["extra"]["osmosis"] == {
        "rollout_id": "r 1",
        "label": "l",
        "reward": 0.5,
        "sample_metrics": {},
        "sample_extra_fields": {},
        "request_metadata": {"row": 1},
        "request_extra_fields": {"step": 3},
        "unmatched_llm_call_metrics": [{"prompt_token_ids": [1, 2, 3]}],
    }
    assert '  "steps": [\n' in text
    assert '"prompt_token_ids": [1, 2, 3]' in text
    assert "ünïcode" in text
    assert sorted(path.name for path in saved.path.parent.iterdir()) == [
        "diagnostics.json",
        "trajectory.json",
    ]
    assert (saved.path.parent / "diagnostics.json").read_text() == (
        f'{{\n  "a": {{\n    "inf": "inf",\n    "path": "{tmp_path}"\n  }},\n  "z": 1\n}}\n'
    )
    assert [record.levelname for record in ours(caplog)] == ["INFO"]


async def test_the_root_comes_from_the_environment_at_save_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_OSMOSIS_ROLLOUT_ARTIFACT_ROOT", str(tmp_path / "later"))
    saved = await save_trajectory(rollout_id="r", result=result(sample()))
    assert saved.path == tmp_path / "later" / "r" / "trajectory.json"


@pytest.mark.parametrize(
    ("without", "reason"),
    [(None, "no sample"), (sample(trajectory_messages=None), "trajectory_messages is None")],
)
async def test_nothing_to_save(
    without: RolloutSample | None,
    reason: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    saved = await save_trajectory(
        rollout_id="r",
        result=result(without),
        artifact_root=tmp_path,
        diagnostics={"phase": "agent"},
    )
    assert (saved.path, saved.reason) == (None, reason)
    assert [path.name for path in (tmp_path / "r").iterdir()] == ["diagnostics.json"]
    assert [record.levelname for record in ours(caplog)] == ["INFO"]


async def test_an_existing_document_is_replaced_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "trajectory.json").symlink_to(outside)
    saved = await save_trajectory(rollout_id="r", result=result(sample()), artifact_root=tmp_path)
    assert saved.path is not None
    assert not saved.path.is_symlink()
    assert outside.read_text() == "untouched"


async def test_a_failed_write_leaves_the_old_document_and_no_rest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = tmp_path / "r" / "trajectory.json"
    (target / "in-the-way").mkdir(parents=True)
    saved = await save_trajectory(
        rollout_id="r", result=result(sample()), artifact_root=tmp_path, diagnostics={}
    )
    assert saved.path is None
    assert saved.reason
    assert sorted(path.name for path in target.parent.iterdir()) == [
        "diagnostics.json",
        "trajectory.json",
    ]
    assert [record.levelname for record in ours(caplog)] == ["WARNING"]


async def test_failed_diagnostics_do_not_cost_the_trajectory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "r" / "diagnostics.json" / "in-the-way").mkdir(parents=True)
    saved = await save_trajectory(
        rollout_id="r", result=result(sample()), artifact_root=tmp_path, diagnostics={"a": 1}
    )
    assert saved.path is not None
    assert saved.path.is_file()
    assert "diagnostics.json not written" in (saved.reason or "")
    assert [record.levelname for record in ours(caplog)] == ["WARNING"]


@pytest.mark.parametrize("rollout_id", ["../up", "a/b", ""])
async def test_an_id_that_leaves_the_root_is_not_written(rollout_id: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    saved = await save_trajectory(
        rollout_id=rollout_id, result=result(sample()), artifact_root=root, diagnostics={}
    )
    assert saved.path is None
    assert "path segment" in (saved.reason or "")
    assert list(tmp_path.rglob("*")) == []


async def test_messages_that_never_end_are_saved_to_where_they_repeat(tmp_path: Path) -> None:
    endless: dict[str, Any] = {"role": "user"}
    endless["content"] = [endless]
    looping = sample()
    looping.trajectory_messages = [endless]
    saved = await save_trajectory(rollout_id="r", result=result(looping), artifact_root=tmp_path)
    assert saved.path is not None
    assert "<circular " in saved.path.read_text()
