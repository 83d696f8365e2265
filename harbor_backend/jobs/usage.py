"""Tokens, costs and token ids of a trial's model calls, as Harbor's ``agent_result``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harbor.models.agent.context import AgentContext, ModelUsage
from harbor.models.agent.rollout_detail import RolloutDetail
from pydantic import ValidationError

from harbor_backend.jobs.reading import as_object, objects_in
from osmosis_ai.rollout.trajectory.report import LlmCallMetrics

TOKEN_GAP = "token_gap"


def agent_context(calls: Sequence[LlmCallMetrics]) -> AgentContext | None:
    """What the calls used, summed and by model; ``None`` where there was none.

    ``rollout_details`` has one turn per call, in order, where any call has token ids.
    A turn whose ids are not an exact record has an empty list, and its reason under
    ``extra["token_gap"]``.
    """
    if not calls:
        return None
    return AgentContext(
        n_input_tokens=_sum(call.prompt_tokens for call in calls),
        n_cache_tokens=_sum(call.cached_tokens for call in calls),
        n_output_tokens=_sum(call.completion_tokens for call in calls),
        cost_usd=_sum(call.cost_usd for call in calls),
        model_usage=_by_model(calls),
        rollout_details=_details(calls),
    )


def filled(own: AgentContext | None, seen: AgentContext | None) -> AgentContext | None:
    """What the agent said of itself, and what was seen of it where it said nothing."""
    if own is None or seen is None:
        return own or seen
    missing = {
        name: getattr(seen, name)
        for name in type(seen).model_fields
        if getattr(own, name) is None and getattr(seen, name) is not None
    }
    return own.model_copy(update=missing)


def calls_of(document: Mapping[str, Any]) -> list[LlmCallMetrics]:
    """The model calls that a saved trajectory (ATIF) tells of, in order."""
    found = [
        {**metrics, "model_name": step.get("model_name")}
        for step in objects_in(document.get("steps"))
        if step.get("source") == "agent" and isinstance(metrics := step.get("metrics"), dict)
    ]
    osmosis = as_object(as_object(document.get("extra")).get("osmosis"))
    unmatched = objects_in(osmosis.get("unmatched_llm_call_metrics"))
    try:
        return [LlmCallMetrics.model_validate(call) for call in unmatched or found]
    except ValidationError:
        return []


def _details(calls: Sequence[LlmCallMetrics]) -> list[RolloutDetail] | None:
    if not any(call.completion_token_ids for call in calls):
        return None
    gaps = [_gap(call) for call in calls]

    def turns(field: str) -> list[list[Any]]:
        return [
            list(getattr(call, field) or []) if gap is None else []
            for call, gap in zip(calls, gaps, strict=True)
        ]

    detail = RolloutDetail(
        prompt_token_ids=turns("prompt_token_ids"),
        completion_token_ids=turns("completion_token_ids"),
    )
    if any(call.logprobs for call in calls):
        detail["logprobs"] = turns("logprobs")
    if any(gap is not None for gap in gaps):
        detail["extra"] = {TOKEN_GAP: list(gaps)}
    return [detail]


def _gap(call: LlmCallMetrics) -> str | None:
    """Why a call's ids are not to be used as a record of it."""
    said = (call.extra or {}).get(TOKEN_GAP)
    if said is not None:
        return str(said)
    if call.completion_token_ids is None or call.prompt_token_ids is None:
        return "the upstream gave no token ids"
    return None


def _by_model(calls: Sequence[LlmCallMetrics]) -> dict[str, ModelUsage] | None:
    models = {call.model_name for call in calls}
    used = {}
    for model in sorted(name for name in models if name is not None):
        own = [call for call in calls if call.model_name == model]
        used[model] = ModelUsage(
            n_input_tokens=_sum(call.prompt_tokens for call in own) or 0,
            n_cache_tokens=_sum(call.cached_tokens for call in own) or 0,
            n_output_tokens=_sum(call.completion_tokens for call in own) or 0,
            cost_usd=_sum(call.cost_usd for call in own),
        )
    return used or None


def _sum[Number: (int, float)](values: Iterable[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None
