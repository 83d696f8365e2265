"""Merging what a model server reported into the steps of the agent."""

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from osmosis_ai.rollout.trajectory.atif import FinalMetrics, Metrics, Step, parse_timestamp
from osmosis_ai.rollout.trajectory.report import LlmCallMetrics, SampleReport, TrajectoryReport
from osmosis_ai.rollout.types.json_safe import to_json_value

logger = logging.getLogger(__name__)

_SUMMED = {
    "total_prompt_tokens": "prompt_tokens",
    "total_completion_tokens": "completion_tokens",
    "total_cached_tokens": "cached_tokens",
    "total_cost_usd": "cost_usd",
}


@dataclass
class Merged:
    """Where the report went; ``unmatched`` belongs under ``extra.osmosis``."""

    final_metrics: FinalMetrics
    model_name: str | None = None
    unmatched: dict[str, Any] = field(default_factory=dict)


def merge_report(
    steps: list[Step],
    report: TrajectoryReport | None,
    llm_calls: Sequence[LlmCallMetrics | Mapping[str, Any]] | None,
) -> Merged:
    """Put the metrics of each call into the step it made, when that is certain.

    ``llm_calls`` are what the engine itself recorded; they count where the
    report brings no calls. Calls map to the agent's steps in order, and only
    when there are as many of one as of the other.
    """
    report = report or TrajectoryReport()
    sample, unmatched = _only_sample(report)
    calls = sample.llm_call_metrics or _recorded(llm_calls)
    agent_steps = [step for step in steps if step.source == "agent"]
    if calls and len(calls) == len(agent_steps):
        for step, call in zip(agent_steps, calls, strict=True):
            _apply(step, call)
        counted: Sequence[Metrics | LlmCallMetrics] = _inline(agent_steps)
    elif calls:
        unmatched["unmatched_llm_call_metrics"] = _dump(calls)
        counted = calls
    else:
        counted = _inline(agent_steps)
    final = _reported_totals(sample.final_metrics) or _sums(counted)
    final.total_steps = len(steps)
    return Merged(final, sample.model_name or report.model_name, unmatched)


def _only_sample(report: TrajectoryReport) -> tuple[SampleReport, dict[str, Any]]:
    if len(report.samples) == 1:
        return next(iter(report.samples.values())), {}
    if not report.samples:
        return SampleReport(), {}
    several = {
        key: to_json_value(sample.model_dump(exclude_none=True))
        for key, sample in report.samples.items()
    }
    return SampleReport(), {"unmatched_sample_reports": several}


def _recorded(
    llm_calls: Sequence[LlmCallMetrics | Mapping[str, Any]] | None,
) -> list[LlmCallMetrics]:
    try:
        return [LlmCallMetrics.model_validate(call) for call in llm_calls or ()]
    except ValidationError as exc:
        logger.warning("Ignored malformed records of model calls: %s", exc)
        return []


def _apply(step: Step, call: LlmCallMetrics) -> None:
    inline = {} if step.metrics is None else step.metrics.model_dump(exclude_none=True)
    reported = to_json_value(call.model_dump(exclude_none=True, exclude={"model_name"}))
    merged = inline | reported
    if merged:
        step.metrics = Metrics(**merged)
        step.llm_call_count = 1
    step.model_name = call.model_name or step.model_name
    started_at = (call.extra or {}).get("started_at")
    if step.timestamp is None and isinstance(started_at, str):
        with contextlib.suppress(ValueError):  # a report may hold anything there
            parse_timestamp(started_at)
            step.timestamp = started_at


def _inline(steps: Sequence[Step]) -> list[Metrics]:
    return [step.metrics for step in steps if step.metrics is not None]


def _dump(calls: Sequence[LlmCallMetrics]) -> list[Any]:
    return [to_json_value(call.model_dump(exclude_none=True)) for call in calls]


def _reported_totals(totals: dict[str, Any] | None) -> FinalMetrics | None:
    given = {k: v for k, v in (totals or {}).items() if k != "total_steps" and v is not None}
    if not given:
        return None
    try:
        return FinalMetrics.model_validate(to_json_value(given))
    except ValidationError as exc:
        logger.warning("Ignored malformed totals in a trajectory report: %s", exc)
        return None


def _sums(counted: Sequence[Metrics | LlmCallMetrics]) -> FinalMetrics:
    totals: dict[str, Any] = {}
    for total, name in _SUMMED.items():
        values = [value for one in counted if (value := getattr(one, name)) is not None]
        if values:
            totals[total] = sum(values)
    return FinalMetrics(**totals)
