"""How many tokens a call took, as its upstream counted them."""

import math
from typing import Any

from osmosis_ai.common.model_calls import Usage
from osmosis_ai.gateway.jsonvalues import count


def usage_of(answer: dict[str, Any]) -> Usage | None:
    """Read the ``usage`` of a chat completion or a Response; ``None`` when there is none.

    ``usage.cost``, US dollars, is OpenRouter's field; the LiteLLM upstream fills it too.
    """
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    return Usage(
        prompt_tokens=_first(usage, "prompt_tokens", "input_tokens"),
        completion_tokens=_first(usage, "completion_tokens", "output_tokens"),
        cached_tokens=_detail(
            usage, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens"
        ),
        reasoning_tokens=_detail(
            usage, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens"
        ),
        cost_usd=_cost(usage.get("cost")),
    )


def _first(usage: dict[str, Any], *names: str) -> int:
    return next((count(usage[name]) for name in names if name in usage), 0)


def _detail(usage: dict[str, Any], names: tuple[str, ...], field: str) -> int:
    found = [usage[name] for name in names if isinstance(usage.get(name), dict)]
    details: dict[str, Any] = found[0] if found else {}
    return count(details.get(field))


def _cost(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    cost = float(value)
    return cost if math.isfinite(cost) and cost >= 0 else None
