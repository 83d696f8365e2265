"""Timestamps, model names and token usage that a chat message may carry."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from osmosis_ai.rollout.trajectory.atif import Metrics, parse_timestamp

_TIME_KEYS = ("created_at", "timestamp", "completed_at")
_MODEL_KEYS = ("model", "model_name")
_TOKEN_KEYS = {
    "prompt_tokens": ("prompt_tokens", "input_tokens"),
    "completion_tokens": ("completion_tokens", "output_tokens"),
}
_DETAIL_KEYS = ("prompt_tokens_details", "input_tokens_details")


@dataclass
class Telemetry:
    """What a message says about its making; ``used`` names the keys it was read from."""

    timestamp: str | None = None
    model_name: str | None = None
    metrics: Metrics | None = None
    used: set[str] = field(default_factory=set)


def read_telemetry(message: Mapping[str, Any], *, is_agent: bool) -> Telemetry:
    """Read the telemetry of one message (JSON values); what is absent stays absent."""
    found = Telemetry()
    extra = _mapping(message.get("extra"))
    response = _mapping(extra.get("response"))

    for key in _TIME_KEYS:
        found.timestamp = timestamp(message.get(key))
        if found.timestamp is not None:
            found.used.add(key)
            break
    else:
        found.timestamp = timestamp(extra.get("timestamp"))
    if not is_agent:
        return found

    for key in _MODEL_KEYS:
        found.model_name = _name(message.get(key))
        if found.model_name is not None:
            found.used.add(key)
            break
    else:
        found.model_name = _name(response.get("model"))

    found.metrics = metrics_from_usage(message.get("usage"))
    if found.metrics is not None:
        found.used.add("usage")
    else:
        found.metrics = metrics_from_usage(response.get("usage"))
    return found


def timestamp(value: Any) -> str | None:
    """Return ISO 8601 text for ISO text or epoch seconds, else ``None``."""
    if isinstance(value, str):
        try:
            parse_timestamp(value)
        except ValueError:
            return None
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    try:
        return datetime.fromtimestamp(value, UTC).isoformat()
    except (OverflowError, OSError, ValueError):
        return None


def metrics_from_usage(usage: Any) -> Metrics | None:
    """Return metrics for a usage object with chat or Responses names, if it is a valid one."""
    if not isinstance(usage, dict):
        return None
    rest = dict(usage)
    counts: dict[str, int] = {}
    for name, keys in _TOKEN_KEYS.items():
        for key in keys:
            value = rest.get(key)
            if value is None:
                continue
            if not _is_count(value):
                return None
            if name not in counts:
                counts[name] = rest.pop(key)
    for key in _DETAIL_KEYS:
        cached = _mapping(usage.get(key)).get("cached_tokens")
        if cached is not None and _is_count(cached) and "cached_tokens" not in counts:
            counts["cached_tokens"] = cached
    if not counts:
        return None
    return Metrics(**counts, extra={k: v for k, v in rest.items() if v is not None} or None)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
