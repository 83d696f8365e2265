"""Running one admitted rollout: model endpoint, backend, files on disk."""

import logging

from osmosis_ai.gateway.gateway import Gateway
from osmosis_ai.gateway.metrics import call_metrics
from osmosis_ai.rollout.backend.base import ExecutionBackend
from osmosis_ai.rollout.context import RolloutContext
from osmosis_ai.rollout.execution import failure
from osmosis_ai.rollout.trajectory.save import save_trajectory
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionRequest, ExecutionResult
from osmosis_ai.rollout.types.protocol import RolloutInitRequest

logger = logging.getLogger(__name__)


async def run_rollout(
    request: RolloutInitRequest, backend: ExecutionBackend, gateway: Gateway
) -> ExecutionResult:
    """Run one rollout and return the result to announce, its files saved already.

    The backend's model calls go to an endpoint of ``gateway`` that lives as
    long as this call. What escapes the backend becomes a failed result.
    """
    opened = gateway.open(
        request.rollout_id, request.chat_completions_url, api_key=request.llm_api_key
    )
    async with opened as endpoint:
        with RolloutContext(endpoint.url, endpoint.token, request.rollout_id):
            outcome = await _execute(request, backend)
        await save_trajectory(
            rollout_id=request.rollout_id,
            result=outcome.result_to_save,
            request_label=request.label,
            request_metadata=request.metadata,
            request_extra_fields=request.extra_fields,
            diagnostics=outcome.result.extra_fields or None,
            llm_calls=call_metrics(endpoint.calls),
        )
    return outcome.result


async def check_route(request: RolloutInitRequest, gateway: Gateway) -> None:
    """Open the rollout's endpoint and close it again, to refuse now what cannot run later.

    Raises:
        ValueError: the URL, the key or the id cannot be used.
    """
    opened = gateway.open(
        request.rollout_id, request.chat_completions_url, api_key=request.llm_api_key
    )
    async with opened:
        pass


async def _execute(request: RolloutInitRequest, backend: ExecutionBackend) -> ExecutionOutcome:
    try:
        outcome = await backend.execute(
            ExecutionRequest(
                id=request.rollout_id,
                prompt=request.initial_messages,
                label=request.label,
                metadata=request.metadata,
                agent_timeout_sec=request.agent_timeout_sec,
                grader_timeout_sec=request.grader_timeout_sec,
                grade=request.grade,
            )
        )
    except Exception as exc:
        logger.exception("Rollout %s: the backend raised", request.rollout_id)
        return ExecutionOutcome(workflow=failure(exc))
    if not outcome.result.status.is_terminal:
        raise RuntimeError(f"the backend returned the status {outcome.result.status.value!r}")
    return outcome
