"""What the outbox keeps of a callback."""

from dataclasses import dataclass, field
from enum import StrEnum

from osmosis_ai.rollout.server.callbacks.auth import ControllerAuth


class CallbackKind(StrEnum):
    """Which of a rollout's two callbacks."""

    COMPLETION = "completion"
    GRADER = "grader"


@dataclass(frozen=True)
class Callback:
    """One callback, whole. A rollout has at most one of each kind.

    Attributes:
        url: where to; checked by ``checked_callback_url``.
        body: JSON, sent unchanged at every attempt.
        auth: the trainer's key.
        created_at: seconds since the epoch; its age counts from here.
        attempts: how often it was tried.
        next_attempt_at: seconds since the epoch; not to be tried before.
        lost_credential: set by a store that cannot open the sealed key any
            more: why, and what to do. Such a callback fails instead of being
            sent without its key.
    """

    rollout_id: str
    kind: CallbackKind
    url: str = field(repr=False)
    body: bytes = field(repr=False)
    auth: ControllerAuth
    created_at: float
    attempts: int = 0
    next_attempt_at: float = 0.0
    lost_credential: str | None = None

    @property
    def pending(self) -> "Pending":
        """The entry without its body."""
        return Pending(
            self.rollout_id,
            self.kind,
            self.url,
            self.created_at,
            self.attempts,
            self.next_attempt_at,
        )


@dataclass(frozen=True)
class Pending:
    """A callback that waits for its turn: small, because thousands may wait for one trainer."""

    rollout_id: str
    kind: CallbackKind
    url: str = field(repr=False)
    created_at: float
    attempts: int = 0
    next_attempt_at: float = 0.0
