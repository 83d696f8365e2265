"""Running one admitted rollout to its outcome, its files saved."""

from functools import partial
from pathlib import Path

from osmosis_ai.common.observer import PERSISTENCE, observer
from osmosis_ai.rollout.backend.base import ExecutionBackend, ResultCallback
from osmosis_ai.rollout.backend.gateway import BackendGateway
from osmosis_ai.rollout.run import run_rollout
from osmosis_ai.rollout.server.request_rules import model_key, wants_grade
from osmosis_ai.rollout.server.run import Run
from osmosis_ai.rollout.trajectory.report import TrajectoryReport
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionRequest, ExecutionResult
from osmosis_ai.rollout.types.protocol import RolloutInitRequest
from osmosis_ai.rollout.types.status import RolloutStatus


async def execute(
    run: Run,
    backend: ExecutionBackend,
    gateway: BackendGateway,
    root: Path,
    on_workflow_complete: ResultCallback | None,
) -> ExecutionOutcome:
    """Run one rollout and return its outcome, its files saved already; see ``run_rollout``."""
    request = run.request
    finished = await run_rollout(
        backend,
        _execution_request(request),
        model=request.chat_completions_url,
        api_key=model_key(request),
        gateway=gateway,
        progress=run.progress,
        on_workflow_complete=on_workflow_complete
        and partial(_unless_cancelled, on_workflow_complete),
    )

    async def save(report: TrajectoryReport | None) -> None:
        await finished.save(root, report=report, extra_fields=request.extra_fields)

    observer().begin(PERSISTENCE)  # until the result is in the store, too
    await save(run.report)
    run.save = save
    return finished.outcome


async def _unless_cancelled(announce: ResultCallback, workflow: ExecutionResult) -> None:
    """Leave out a cancelled rollout: what it owes its caller follows its result into the store."""
    if workflow.status is not RolloutStatus.CANCELLED:
        await announce(workflow)


def _execution_request(request: RolloutInitRequest) -> ExecutionRequest:
    return ExecutionRequest(
        id=request.rollout_id,
        prompt=request.initial_messages,
        label=request.label,
        metadata=request.metadata,
        agent_timeout_sec=request.agent_timeout_sec,
        grader_timeout_sec=request.grader_timeout_sec,
        grade=wants_grade(request),
    )
