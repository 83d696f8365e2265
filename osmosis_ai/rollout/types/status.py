"""The vocabularies of a rollout: where it is, and why it failed."""

from enum import StrEnum


class RolloutStatus(StrEnum):
    """Where a rollout is. The last four are terminal."""

    QUEUED = "queued"
    RUNNING = "running"
    GRADING = "grading"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def is_terminal(self) -> bool:
        """Whether the rollout has ended and its result will not change."""
        return self in _TERMINAL


_TERMINAL = frozenset(
    {
        RolloutStatus.SUCCESS,
        RolloutStatus.FAILURE,
        RolloutStatus.CANCELLED,
        RolloutStatus.UNKNOWN,
    }
)


class RolloutErrorCategory(StrEnum):
    """Why a rollout failed, in one word that a trainer can act on.

    ``infrastructure_error`` is ours: the sandbox or its host failed, not the
    agent, so the rollout may be run again without bias. ``interrupted`` is ours
    too: the engine that ran it was stopped or killed. ``http_error`` is the
    service's that the agent called, its model's above all.
    """

    TIMEOUT = "timeout"
    VALIDATION_ERROR = "validation_error"
    HTTP_ERROR = "http_error"
    AGENT_ERROR = "agent_error"
    LEASE_EXPIRED = "lease_expired"
    INTERNAL_ERROR = "internal_error"
    INFRASTRUCTURE_ERROR = "infrastructure_error"
    INTERRUPTED = "interrupted"

    @property
    def may_run_again(self) -> bool:
        """Whether neither the agent nor the task was at fault: running it again adds no bias."""
        return self not in _OWN


_OWN = frozenset(
    {
        RolloutErrorCategory.TIMEOUT,
        RolloutErrorCategory.VALIDATION_ERROR,
        RolloutErrorCategory.AGENT_ERROR,
    }
)


class GraderStatus(StrEnum):
    """The outcome of grading, as the callback protocol spells it."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
