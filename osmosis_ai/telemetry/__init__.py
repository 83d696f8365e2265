"""Logs, traces and metrics of rollouts.

``Telemetry`` (extra ``server``) is loaded on first use; what backends and the gateway
report through is cheap to import and does nothing outside a rollout that is observed.
"""

from typing import TYPE_CHECKING, Any

from osmosis_ai.common.log_context import about_rollout
from osmosis_ai.common.observer import ModelCall, RolloutObserver, observer, phase
from osmosis_ai.telemetry.logs import configure_logs

if TYPE_CHECKING:
    from osmosis_ai.telemetry.telemetry import Telemetry

__all__ = [
    "ModelCall",
    "RolloutObserver",
    "Telemetry",
    "about_rollout",
    "configure_logs",
    "observer",
    "phase",
]


def __getattr__(name: str) -> Any:
    if name != "Telemetry":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from osmosis_ai.common.extras import needs_extra

    with needs_extra("server", "Telemetry", "prometheus_client"):
        from osmosis_ai.telemetry.telemetry import Telemetry

        return Telemetry
