"""Running one rollout on a backend, with a model endpoint of its own, and saving what it leaves."""

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmosis_ai.gateway.metrics import call_metrics
from osmosis_ai.rollout.backend.base import ExecutionBackend, ResultCallback
from osmosis_ai.rollout.backend.gateway import BackendGateway
from osmosis_ai.rollout.context import RolloutContext, RolloutProgress
from osmosis_ai.rollout.execution import failure
from osmosis_ai.rollout.trajectory.report import LlmCallMetrics, TrajectoryReport
from osmosis_ai.rollout.trajectory.save import SaveResult, save_trajectory
from osmosis_ai.rollout.types.execution import (
    ExecutionOutcome,
    ExecutionRequest,
    ExecutionResult,
)
from osmosis_ai.rollout.types.status import RolloutErrorCategory

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FinishedRollout:
    """A rollout that has ended.

    ``calls`` are those of its agent, as the endpoint recorded them; ``None`` when it had none.
    """

    request: ExecutionRequest
    outcome: ExecutionOutcome
    calls: list[LlmCallMetrics] | None = None

    async def save(
        self,
        artifact_root: Path,
        *,
        report: TrajectoryReport | None = None,
        extra_fields: Mapping[str, Any] | None = None,
    ) -> SaveResult:
        """Write its trajectory and diagnostics; see ``save_trajectory``.

        Saved again, with a ``report`` that came late, it replaces what was there.
        """
        return await save_trajectory(
            rollout_id=self.request.id,
            result=self.outcome.result_to_save,
            request_label=self.request.label,
            request_metadata=self.request.metadata,
            request_extra_fields=extra_fields,
            report=report,
            artifact_root=artifact_root,
            diagnostics=_diagnostics(self.outcome.result) or None,
            llm_calls=self.calls,
        )


def _diagnostics(result: ExecutionResult) -> dict[str, Any]:
    """What the files say of a result: its diagnostics, and how it failed if it did."""
    if result.err_category is None and result.err_message is None:
        return result.extra_fields
    failed = result.model_dump(mode="json", include={"status", "err_message", "err_category"})
    return {**result.extra_fields, **failed}


async def run_rollout(
    backend: ExecutionBackend,
    request: ExecutionRequest,
    *,
    model: str | None,
    api_key: str | None = None,
    gateway: BackendGateway | None = None,
    progress: RolloutProgress | None = None,
    on_workflow_complete: ResultCallback | None = None,
) -> FinishedRollout:
    """Run one rollout; what fails outside of it, the backend included, is a failed result, too.

    Args:
        model: what answers the agent's calls: the base URL of an OpenAI-compatible
            server, ``embedded/<policy>`` or ``litellm/<provider>/<model>``. The
            rollout gets an endpoint to it that ends with this call. With ``None``
            it runs in the rollout context that the caller has.
        api_key: the model's, which no agent sees.
        gateway: where the endpoint is opened if the backend has no gateway of its own.
        progress: gets the rollout's status as the backend reports it.
        on_workflow_complete: see ``ExecutionBackend.execute``.

    Raises:
        RuntimeError: the backend returned a status that is no end.
    """
    async with AsyncExitStack() as stack:
        if model is None:
            outcome = await _execute(backend, request, on_workflow_complete)
            return FinishedRollout(request, outcome)
        try:
            gateway = backend.gateway or gateway
            if gateway is None:
                gateway = await stack.enter_async_context(BackendGateway())
            endpoint = await stack.enter_async_context(gateway.open(request.id, model, api_key))
        except (ValueError, OSError) as exc:
            return FinishedRollout(request, _not_started(request, exc))
        with RolloutContext(rollout_id=request.id, progress=progress, endpoint=endpoint):
            outcome = await _execute(backend, request, on_workflow_complete)
    return FinishedRollout(request, outcome, call_metrics(endpoint.calls))


async def _execute(
    backend: ExecutionBackend,
    request: ExecutionRequest,
    on_workflow_complete: ResultCallback | None,
) -> ExecutionOutcome:
    try:
        outcome = await backend.execute(request, on_workflow_complete)
    except Exception as exc:
        logger.exception("Rollout %s: the backend raised", request.id)
        return ExecutionOutcome(workflow=failure(exc))
    if not outcome.result.status.is_terminal:
        raise RuntimeError(f"the backend returned the status {outcome.result.status.value!r}")
    return outcome


def _not_started(request: ExecutionRequest, exc: ValueError | OSError) -> ExecutionOutcome:
    logger.warning("Rollout %s: its model endpoint cannot be opened", request.id, exc_info=exc)
    category = (
        RolloutErrorCategory.VALIDATION_ERROR
        if isinstance(exc, ValueError)
        else RolloutErrorCategory.INFRASTRUCTURE_ERROR
    )
    return ExecutionOutcome(workflow=failure(exc, category=category))
