"""The model gateway: one rollout-scoped model endpoint for every backend.

``Gateway`` is loaded on first use, because it needs aiohttp (extra ``gateway``);
everything else here is cheap to import.
"""

from typing import TYPE_CHECKING, Any

from osmosis_ai.common.model_calls import CallRecord, Usage
from osmosis_ai.gateway.capture import Capture
from osmosis_ai.gateway.errors import ApiError, GatewayError, UpstreamError
from osmosis_ai.gateway.limits import GatewayLimits
from osmosis_ai.gateway.records import EndpointSummary, LimitEvent

if TYPE_CHECKING:
    from osmosis_ai.gateway.endpoint import Endpoint
    from osmosis_ai.gateway.gateway import Gateway

__all__ = [
    "ApiError",
    "CallRecord",
    "Capture",
    "Endpoint",
    "EndpointSummary",
    "Gateway",
    "GatewayError",
    "GatewayLimits",
    "LimitEvent",
    "UpstreamError",
    "Usage",
]


def __getattr__(name: str) -> Any:
    if name == "Endpoint":
        from osmosis_ai.gateway.endpoint import Endpoint

        return Endpoint
    if name == "Gateway":
        try:
            from osmosis_ai.gateway.gateway import Gateway
        except ModuleNotFoundError as exc:
            if exc.name != "aiohttp":
                raise
            raise ImportError(
                "the model gateway needs aiohttp: pip install 'osmosis-ai[gateway]'"
            ) from exc
        return Gateway
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
