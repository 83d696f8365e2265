"""Types that cross a boundary of the engine."""

from osmosis_ai.rollout.types.config import (
    AgentWorkflowConfig,
    BaseConfig,
    ConcurrencyConfig,
    GraderConfig,
)
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionRequest, ExecutionResult
from osmosis_ai.rollout.types.messages import MessageDict, Messages
from osmosis_ai.rollout.types.output import AgentWorkflowOutput, coerce_output
from osmosis_ai.rollout.types.protocol import (
    POLLING_LEASE_HEADER,
    CancelRolloutsRequest,
    CancelRolloutsResponse,
    GraderCompleteRequest,
    GraderInitRequest,
    GraderInitResponse,
    RolloutCompleteRequest,
    RolloutInitRequest,
    RolloutInitResponse,
    RolloutResultResponse,
    RolloutStatusResponse,
)
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import GraderStatus, RolloutErrorCategory, RolloutStatus

__all__ = [
    "POLLING_LEASE_HEADER",
    "AgentWorkflowConfig",
    "AgentWorkflowOutput",
    "BaseConfig",
    "CancelRolloutsRequest",
    "CancelRolloutsResponse",
    "ConcurrencyConfig",
    "ExecutionOutcome",
    "ExecutionRequest",
    "ExecutionResult",
    "GraderCompleteRequest",
    "GraderConfig",
    "GraderInitRequest",
    "GraderInitResponse",
    "GraderStatus",
    "MessageDict",
    "Messages",
    "RolloutCompleteRequest",
    "RolloutErrorCategory",
    "RolloutInitRequest",
    "RolloutInitResponse",
    "RolloutResultResponse",
    "RolloutSample",
    "RolloutStatus",
    "RolloutStatusResponse",
    "coerce_output",
]
