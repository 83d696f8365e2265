"""The gateway's records as a trajectory and a trainer want them."""

from collections.abc import Sequence
from typing import Any

from osmosis_ai.common.model_calls import CallRecord
from osmosis_ai.gateway.records import EndpointSummary
from osmosis_ai.rollout.trajectory.report import LlmCallMetrics


def call_metrics(calls: Sequence[CallRecord]) -> list[LlmCallMetrics]:
    """What a trajectory keeps of the calls that were answered; a failed one made no step.

    Pass the result as ``llm_calls``. ``extra`` holds what has no field of its own:
    ``started_at`` (ISO 8601, UTC), ``total_sec``, ``latency_to_first_token_sec``,
    ``finish_reason``, ``reasoning_tokens``, and ``token_gap`` when the ids are not exact.
    """
    return [_metrics(call) for call in calls if call.error is None]


def untrainable_reason(
    calls: Sequence[CallRecord], summary: EndpointSummary, *, ids_required: bool = False
) -> str | None:
    """Why the token ids of a rollout are not an exact record; ``None`` when they are.

    A rollout whose upstream was never asked for ids, and gave none, is not judged,
    unless ``ids_required``.
    """
    if summary.first_gap is not None:
        return f"{summary.gaps} model call(s) without exact token ids: {summary.first_gap}"
    given = [call for call in calls if call.completion_token_ids is not None]
    answered = [call for call in calls if call.error is None]
    if ids_required and len(given) < len(answered):
        return f"{len(answered) - len(given)} model call(s) without token ids"
    if given and summary.records_error is not None:
        return f"the record file is incomplete: {summary.records_error}"
    if given and len(calls) < summary.calls + summary.refused:
        missing = summary.calls + summary.refused - len(calls)
        return (
            f"{missing} model call(s) are no longer in memory (GatewayLimits.max_calls_in_memory)"
        )
    return None


def _metrics(call: CallRecord) -> LlmCallMetrics:
    usage = call.usage
    extra = {
        "started_at": call.started_at.isoformat(),
        "total_sec": call.total_sec,
        "latency_to_first_token_sec": call.latency_to_first_token_sec,
        "finish_reason": call.finish_reason,
        "reasoning_tokens": usage and usage.reasoning_tokens,
        "token_gap": call.token_gap,
    }
    return LlmCallMetrics(
        prompt_tokens=usage and usage.prompt_tokens,
        completion_tokens=usage and usage.completion_tokens,
        cached_tokens=usage and usage.cached_tokens,
        cost_usd=usage and usage.cost_usd,
        prompt_token_ids=_list(call.prompt_token_ids),
        completion_token_ids=_list(call.completion_token_ids),
        logprobs=_list(call.logprobs),
        model_name=call.model,
        extra={key: value for key, value in extra.items() if value is not None},
    )


def _list(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)
