"""Running one rollout and saving it, as the server, the CLI and the demo do."""

import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowContext,
    ExecutionBackend,
    ExecutionOutcome,
    ExecutionRequest,
    ExecutionResult,
    LocalBackend,
    RolloutContext,
    RolloutErrorCategory,
    RolloutSample,
    RolloutStatus,
    get_rollout_context,
)
from osmosis_ai.rollout.backend.gateway import BackendGateway
from osmosis_ai.rollout.context import RolloutProgress
from osmosis_ai.rollout.run import run_rollout
from osmosis_ai.rollout.trajectory.report import TrajectoryReport

PROMPT = [{"role": "user", "content": "What is 6 x 7?"}]
REQUEST = ExecutionRequest(
    id="r", prompt=PROMPT, label="42", metadata={"row": 7}, grade=False, agent_timeout_sec=60
)
MODEL = "embedded/echo"

pytestmark = pytest.mark.usefixtures("artifact_root")


async def ask() -> dict[str, Any]:
    """Ask the model of the active rollout context; returns its message."""
    context = get_rollout_context()
    assert context is not None
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(
            f"{context.chat_completions_url}/chat/completions",
            json={"model": "m", "messages": PROMPT},
            headers={"Authorization": f"Bearer {context.api_key}"},
        )
    message: dict[str, Any] = answer.json()["choices"][0]["message"]
    return message


class Asks(AgentWorkflow[Any]):
    """One call of the model."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> Any:
        return [*ctx.prompt, await ask()]


class Foreign(ExecutionBackend):
    """Written to the published contract: it knows no gateway, only the context."""

    def __init__(self, outcome: ExecutionOutcome | Exception | None = None) -> None:
        self.outcome = outcome
        self.contexts: list[RolloutContext | None] = []

    async def execute(self, request: ExecutionRequest, *_: Any) -> ExecutionOutcome:
        context = get_rollout_context()
        self.contexts.append(context)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        if self.outcome is not None:
            return self.outcome
        sample = RolloutSample(messages=[*request.prompt, await ask()])
        return ExecutionOutcome(
            workflow=ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample)
        )


async def test_the_files_say_how_it_failed(artifact_root: Path) -> None:
    late = ExecutionResult(
        status=RolloutStatus.SUCCESS,
        sample=RolloutSample(messages=PROMPT, reward=1.0),
        err_message="too late",
        err_category=RolloutErrorCategory.TIMEOUT,
        extra_fields={"phase": "agent"},
    )
    backend = Foreign(ExecutionOutcome(workflow=late))
    finished = await run_rollout(backend, REQUEST, model=MODEL)
    await finished.save(artifact_root)
    assert json.loads((artifact_root / "r" / "diagnostics.json").read_text()) == {
        "phase": "agent",
        "status": "success",
        "err_message": "too late",
        "err_category": "timeout",
    }


def saved(root: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((root / "r" / "trajectory.json").read_text())
    return document


@pytest.mark.parametrize("kind", ["local", "foreign"])
async def test_what_belongs_to_a_rollout_is_saved(kind: str, artifact_root: Path) -> None:
    backend = LocalBackend(workflow=Asks) if kind == "local" else Foreign()
    finished = await run_rollout(backend, REQUEST, model=MODEL)
    assert finished.outcome.result.status is RolloutStatus.SUCCESS
    assert finished.calls is not None
    assert len(finished.calls) == 1
    result = await finished.save(artifact_root, extra_fields={"step": 3})
    assert result.path == artifact_root / "r" / "trajectory.json"
    document = saved(artifact_root)
    assert document["steps"][-1]["metrics"]["prompt_tokens"] > 0
    assert document["extra"]["osmosis"]["request_metadata"] == {"row": 7}
    assert document["extra"]["osmosis"]["request_extra_fields"] == {"step": 3}
    report = TrajectoryReport.model_validate({"model_name": "told-late"})
    await finished.save(artifact_root, report=report)
    assert saved(artifact_root)["agent"]["model_name"] == "told-late"
    await backend.shutdown()


async def test_a_backends_own_gateway_is_used_and_a_call_recorded_once() -> None:
    backend = LocalBackend(workflow=Asks)
    async with BackendGateway() as unused:
        finished = await run_rollout(backend, REQUEST, model=MODEL, gateway=unused)
    assert finished.calls is not None
    assert len(finished.calls) == 1
    assert finished.outcome.workflow.extra_fields["model_calls"]["calls"] == 1
    await backend.shutdown()


async def test_a_foreign_backend_gets_an_endpoint_of_the_callers_gateway() -> None:
    backend = Foreign()
    async with BackendGateway() as gateway, gateway.open("another", MODEL) as another:
        await run_rollout(backend, REQUEST, model=MODEL, gateway=gateway)
    (context,) = backend.contexts
    assert context is not None
    assert context.endpoint is not None
    assert context.rollout_id == "r"
    assert context.chat_completions_url == another.url.replace("/another/", "/r/")
    assert context.api_key == context.endpoint.token


async def test_without_a_model_the_callers_context_stays() -> None:
    backend = Foreign(ExecutionOutcome(workflow=ExecutionResult(status=RolloutStatus.SUCCESS)))
    with RolloutContext(rollout_id="mine") as mine:
        finished = await run_rollout(backend, REQUEST, model=None)
    assert backend.contexts == [mine]
    assert finished.calls is None


async def test_a_model_that_cannot_be_reached_is_a_result(caplog: pytest.LogCaptureFixture) -> None:
    backend = Foreign()
    wrong = await run_rollout(backend, REQUEST, model="ftp://model")
    assert wrong.outcome.result.err_category is RolloutErrorCategory.VALIDATION_ERROR
    assert "ftp://model" in str(wrong.outcome.result.err_message)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        gateway = BackendGateway(port=taken.getsockname()[1])
        deaf = await run_rollout(backend, REQUEST, model=MODEL, gateway=gateway)
    assert deaf.outcome.result.err_category is RolloutErrorCategory.INFRASTRUCTURE_ERROR
    assert "address already in use" in str(deaf.outcome.result.err_message)
    assert backend.contexts == []
    assert "cannot be opened" in caplog.text


async def test_what_escapes_the_backend_is_a_result(caplog: pytest.LogCaptureFixture) -> None:
    finished = await run_rollout(Foreign(ConnectionError("it broke")), REQUEST, model=MODEL)
    assert finished.outcome.result.status is RolloutStatus.FAILURE
    assert finished.outcome.result.err_message == "it broke"
    assert "the backend raised" in caplog.text


async def test_a_status_that_is_no_end_is_the_backends_error() -> None:
    running = ExecutionOutcome(workflow=ExecutionResult(status=RolloutStatus.RUNNING))
    with pytest.raises(RuntimeError, match="the status 'running'"):
        await run_rollout(Foreign(running), REQUEST, model=MODEL)


async def test_progress_and_the_workflows_end_are_passed_on() -> None:
    followed: list[RolloutStatus] = []
    heard: list[RolloutStatus] = []

    async def hear(result: ExecutionResult) -> None:
        heard.append(result.status)

    backend = LocalBackend(workflow=Asks)
    await run_rollout(
        backend,
        REQUEST,
        model=MODEL,
        progress=RolloutProgress(observer=followed.append),
        on_workflow_complete=hear,
    )
    assert followed == [RolloutStatus.RUNNING]
    assert heard == [RolloutStatus.SUCCESS]
    await backend.shutdown()
