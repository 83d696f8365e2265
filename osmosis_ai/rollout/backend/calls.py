"""What a rollout's endpoints saw, noted on its results."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from osmosis_ai.rollout.types.execution import ExecutionResult

if TYPE_CHECKING:
    from osmosis_ai.gateway import Endpoint

UNTRAINABLE = "untrainable"


def report_calls(result: ExecutionResult, endpoint: "Endpoint | None", name: str) -> None:
    """Note on a result what its endpoint saw: totals, errors, and limits that were exceeded."""
    if endpoint is None:
        return
    totals = {
        field: value
        for field, value in asdict(endpoint.summary()).items()
        if value not in (None, (), 0) or field in {"calls", "errors"}
    }
    if "limit_events" in totals:
        totals["limit_events"] = [
            {**event, "at": event["at"].isoformat()} for event in totals["limit_events"]
        ]
    result.extra_fields[name] = totals


def mark_untrainable(result: ExecutionResult, endpoint: "Endpoint | None") -> None:
    """Mark a sample whose token ids were asked for, and are not an exact record."""
    if endpoint is None or result.sample is None:
        return
    from osmosis_ai.gateway.metrics import untrainable_reason

    wanted = endpoint.capture.token_ids
    reason = untrainable_reason(endpoint.calls, endpoint.summary(), ids_required=wanted)
    if reason is not None:
        fields: dict[str, Any] = {**result.sample.extra_fields, UNTRAINABLE: reason}
        result.sample = result.sample.model_copy(update={"extra_fields": fields})
