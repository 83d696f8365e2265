"""What runs share, and what they must not."""

import os
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    ExecutionResult,
    Grader,
    GraderConfig,
    GraderContext,
    LocalBackend,
    RolloutSample,
    RolloutStatus,
    get_rollout_context,
)
from tests.local_backend.gates import DONE, QuickGrader, QuickWorkflow, request

SEEN: list[Any] = []


class Holder:
    """An object that no model validates."""


class KeepsConfig(AgentWorkflow[Any]):
    async def run(self, ctx: AgentWorkflowContext[Any]) -> Any:
        SEEN.append((ctx.config, self.config))
        return [DONE]


class KeepsGraderConfig(Grader):
    async def grade(self, ctx: GraderContext) -> None:
        SEEN.append(self.config)
        ctx.set_reward(1.0)


class Writes(AgentWorkflow[Any]):
    async def run(self, ctx: AgentWorkflowContext[Any]) -> Any:
        assert ctx.artifacts_dir is not None
        names = [path.name for path in ctx.artifacts_dir.iterdir()]
        (ctx.artifacts_dir / "log.txt").write_text("x")
        return [{"role": "assistant", "content": names}]


class ReportsDir(AgentWorkflow[Any]):
    async def run(self, ctx: AgentWorkflowContext[Any]) -> Any:
        return [{"role": "assistant", "content": ctx.artifacts_dir is None}]


class ReportsGraderDir(Grader):
    async def grade(self, ctx: GraderContext) -> None:
        ctx.set_reward(float(ctx.artifacts_dir is None))


class KeepsContexts(AgentWorkflow[Any]):
    async def run(self, ctx: AgentWorkflowContext[Any]) -> Any:
        SEEN.append(get_rollout_context())
        return [DONE]


@pytest.fixture(autouse=True)
def _forget() -> None:
    SEEN.clear()


async def test_each_run_has_its_own_workflow_config() -> None:
    config: Any = AgentWorkflowConfig.model_validate(
        {"name": "x", "tools": [Holder()], "map": {"a": []}}
    )
    backend = LocalBackend(workflow=KeepsConfig, workflow_config=config)
    await backend.execute(request("a", grade=False))
    await backend.execute(request("b", grade=False))
    (first, first_self), (second, second_self) = SEEN
    assert first is first_self
    assert second is second_self
    for left, right in ((first, second), (first, config), (second, config)):
        assert left is not right
        assert left.concurrency is not right.concurrency
        for name in ("tools", "map"):
            assert getattr(left, name) is not getattr(right, name)
        assert left.tools[0] is not right.tools[0]
        assert left.map["a"] is not right.map["a"]


async def test_each_run_has_its_own_grader_config() -> None:
    config: Any = GraderConfig.model_validate({"name": "x", "weights": {"a": [1.0]}})
    backend = LocalBackend(workflow=QuickWorkflow, grader=KeepsGraderConfig, grader_config=config)
    await backend.execute(request("a"))
    await backend.execute(request("b"))
    first, second = SEEN
    for left, right in ((first, second), (first, config), (second, config)):
        assert left is not right
        assert left.weights["a"] is not right.weights["a"]


async def test_each_run_has_its_own_rollout_context() -> None:
    backend = LocalBackend(workflow=KeepsContexts)
    await backend.execute(request("a", grade=False))
    await backend.execute(request("b", grade=False))
    assert [context.rollout_id for context in SEEN] == ["a", "b"]
    assert get_rollout_context() is None


async def test_a_reused_id_starts_with_an_empty_directory(artifact_root: Path) -> None:
    backend = LocalBackend(workflow=Writes)
    for _ in range(2):
        outcome = await backend.execute(request(grade=False))
        assert outcome.result.sample is not None
        assert outcome.result.sample.messages[0]["content"] == []
    assert (artifact_root / "r" / "artifacts" / "log.txt").read_text() == "x"
    assert len(list((artifact_root / ".replaced").iterdir())) == 1


async def test_without_a_writable_root_the_rollout_still_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    monkeypatch.setenv("_OSMOSIS_ROLLOUT_ARTIFACT_ROOT", str(in_the_way))
    backend = LocalBackend(workflow=ReportsDir, grader=ReportsGraderDir)
    outcome = await backend.execute(request())
    assert outcome.result.status is RolloutStatus.SUCCESS
    assert outcome.result.sample is not None
    assert outcome.result.sample.messages[0]["content"] is True
    assert outcome.result.sample.reward == 1.0
    assert "no artifacts directory" in caplog.text


async def test_the_root_is_taken_once(
    tmp_path: Path, artifact_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = LocalBackend(workflow=Writes)
    monkeypatch.setenv("_OSMOSIS_ROLLOUT_ARTIFACT_ROOT", os.fspath(tmp_path / "elsewhere"))
    await backend.execute(request(grade=False))
    assert (artifact_root / "r" / "artifacts" / "log.txt").exists()
    assert not (tmp_path / "elsewhere").exists()


async def test_phases_may_be_run_alone() -> None:
    backend = LocalBackend(workflow=QuickWorkflow, grader=QuickGrader)
    workflow = await backend.run_workflow(request())
    assert workflow.status is RolloutStatus.SUCCESS
    assert workflow.sample is not None
    assert workflow.sample.label == "4"

    graded = await backend.run_grader(request(), workflow)

    assert graded.sample is not None
    assert graded.sample.reward == 1.0
    assert workflow.sample.reward is None, "the workflow's result stays as it was"
    assert backend.rollout_status("r") is None


async def test_run_workflow_charges_the_queue_time_it_is_told() -> None:
    backend = LocalBackend(workflow=QuickWorkflow)
    result = await backend.run_workflow(request(agent_timeout_sec=5), queued_sec=6.0)
    assert result.err_message == "Workflow exceeded its 5s deadline (6.0s of it spent queued)"


async def test_run_grader_without_a_sample() -> None:
    backend = LocalBackend(workflow=QuickWorkflow, grader=QuickGrader)
    empty = ExecutionResult(status=RolloutStatus.SUCCESS)
    result = await backend.run_grader(request(), empty)
    assert result.status is RolloutStatus.FAILURE
    assert "no sample to reward" in str(result.err_message)


async def test_the_request_is_left_alone() -> None:
    backend = LocalBackend(workflow=QuickWorkflow, grader=QuickGrader)
    asked = request(metadata={"a": [1]})
    before = asked.model_copy(deep=True)
    outcome = await backend.execute(asked)
    assert asked == before
    assert isinstance(outcome.result.sample, RolloutSample)
    assert outcome.result.sample.messages[0] is not asked.prompt[0]
