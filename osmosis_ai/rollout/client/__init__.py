"""A trainer's side of the rollout server's protocols."""

from osmosis_ai.rollout.client.client import RolloutClient
from osmosis_ai.rollout.client.errors import (
    RolloutAdmissionTimeoutError,
    RolloutProtocolError,
    RolloutUnreachableError,
)
from osmosis_ai.rollout.client.handle import RolloutHandle

__all__ = [
    "RolloutAdmissionTimeoutError",
    "RolloutClient",
    "RolloutHandle",
    "RolloutProtocolError",
    "RolloutUnreachableError",
]
