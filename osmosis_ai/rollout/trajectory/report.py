"""What a model server reports about the calls of a rollout."""

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

logger = logging.getLogger(__name__)


class _Reported(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class LlmCallMetrics(_Reported):
    """One model call. Costs are US dollars; ids and logprobs are per token."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    model_name: str | None = None
    extra: dict[str, Any] | None = None


class SampleReport(_Reported):
    """The calls of one sample in the order they were made, and their totals."""

    model_name: str | None = None
    llm_call_metrics: list[LlmCallMetrics] = []
    final_metrics: dict[str, Any] | None = None


class TrajectoryReport(_Reported):
    """A server's report; a rollout has one sample, so one entry applies whatever its key."""

    model_name: str | None = None
    samples: dict[str, SampleReport] = {}


def report_from_response(body: object) -> TrajectoryReport | None:
    """Return the report under ``trajectory`` in a callback's answer (decoded JSON).

    ``None`` when there is none; a malformed one is ignored with a warning.
    """
    reported = body.get("trajectory") if isinstance(body, Mapping) else None
    if reported is None:
        return None
    try:
        return TrajectoryReport.model_validate(reported)
    except ValidationError as exc:
        logger.warning("Ignored a malformed trajectory report: %s", exc)
        return None
