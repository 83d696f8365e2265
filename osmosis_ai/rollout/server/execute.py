"""Running one rollout: model endpoint, backend, callbacks on the way, files on disk."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from osmosis_ai.gateway.gateway import Gateway
from osmosis_ai.gateway.metrics import call_metrics
from osmosis_ai.rollout.backend.base import ExecutionBackend
from osmosis_ai.rollout.context import RolloutContext
from osmosis_ai.rollout.execution import failure
from osmosis_ai.rollout.server.admission import model_key, wants_grade
from osmosis_ai.rollout.server.run import Run
from osmosis_ai.rollout.trajectory.report import TrajectoryReport
from osmosis_ai.rollout.trajectory.save import save_trajectory
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionRequest, ExecutionResult
from osmosis_ai.rollout.types.protocol import RolloutInitRequest
from osmosis_ai.telemetry.current import PERSISTENCE, observer

logger = logging.getLogger(__name__)

type WorkflowHook = Callable[[ExecutionResult], Awaitable[None]]


async def execute(
    run: Run,
    backend: ExecutionBackend,
    gateway: Gateway,
    root: Path,
    on_workflow_complete: WorkflowHook | None,
) -> ExecutionOutcome:
    """Run one rollout and return its outcome, its files saved already.

    The backend's model calls go to an endpoint of ``gateway`` that lives as
    long as this call. What escapes the backend becomes a failed result.
    """
    request = run.request
    opened = gateway.open(
        request.rollout_id, request.chat_completions_url, api_key=model_key(request)
    )
    async with opened as endpoint:
        context = RolloutContext(
            endpoint.url, endpoint.token, request.rollout_id, progress=run.progress
        )
        with context:
            outcome = await _execute(request, backend, on_workflow_complete)
        calls = call_metrics(endpoint.calls)

    async def save(report: TrajectoryReport | None) -> None:
        await save_trajectory(
            rollout_id=request.rollout_id,
            result=outcome.result_to_save,
            request_label=request.label,
            request_metadata=request.metadata,
            request_extra_fields=request.extra_fields,
            report=report,
            artifact_root=root,
            diagnostics=outcome.result.extra_fields or None,
            llm_calls=calls,
        )

    observer().begin(PERSISTENCE)  # until the result is in the store, too
    await save(run.report)
    run.save = save
    return outcome


async def _execute(
    request: RolloutInitRequest,
    backend: ExecutionBackend,
    on_workflow_complete: WorkflowHook | None,
) -> ExecutionOutcome:
    try:
        outcome = await backend.execute(
            ExecutionRequest(
                id=request.rollout_id,
                prompt=request.initial_messages,
                label=request.label,
                metadata=request.metadata,
                agent_timeout_sec=request.agent_timeout_sec,
                grader_timeout_sec=request.grader_timeout_sec,
                grade=wants_grade(request),
            ),
            on_workflow_complete,
        )
    except Exception as exc:
        logger.exception("Rollout %s: the backend raised", request.rollout_id)
        return ExecutionOutcome(workflow=failure(exc))
    if not outcome.result.status.is_terminal:
        raise RuntimeError(f"the backend returned the status {outcome.result.status.value!r}")
    return outcome
