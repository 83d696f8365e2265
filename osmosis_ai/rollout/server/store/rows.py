"""What goes into the store and what comes out of it."""

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.status import RolloutStatus

type Protocol = Literal["polling", "callback"]

CANCEL_ASKED = "cancel_asked"
"""An event that is no status: a server asks the one that runs the rollout to cancel it."""


@dataclass(frozen=True)
class NewRollout:
    """A rollout to admit.

    ``request`` is its JSON without credentials, ``sealed`` what the store's keys
    made of those; ``lease_sec`` is ``None`` when nobody polls for it.
    """

    id: str
    protocol: Protocol
    fingerprint: bytes
    nonce: bytes
    digest: bytes
    request: bytes
    sealed: bytes | None
    rerun: bool
    owner: str
    admitted_at: float
    lease_sec: float | None


@dataclass(frozen=True)
class Record:
    """A rollout as the store knows it, without request and result.

    Attributes:
        number: grows with every admission.
        attempt: how often it was taken over from a server that ended.
        disposition: how a cancellation was answered.
        ending: ``reward``, ``err_message`` and ``err_category``, once it has ended.
        expires_at: from then on the result is not served and the id is free.
    """

    number: int
    id: str
    protocol: Protocol
    fingerprint: bytes
    nonce: bytes
    digest: bytes
    rerun: bool
    attempt: int
    owner: str
    status: RolloutStatus
    admitted_at: float
    changed_at: float
    finished_at: float | None
    disposition: str | None
    ending: dict[str, Any] | None
    expires_at: float | None

    @property
    def finished(self) -> bool:
        """Whether there is a result."""
        return self.finished_at is not None


@dataclass(frozen=True)
class Claimed:
    """A rollout taken over from a server that ended, with what running it again needs.

    ``callbacks`` are the kinds that it has in the store already.
    """

    record: Record
    request: bytes
    sealed: bytes | None
    callbacks: frozenset[str]


@dataclass(frozen=True)
class NewCallback:
    """A callback to keep; ``sealed`` is what the store's keys made of the trainer's."""

    rollout_id: str
    kind: str
    url: str
    body: bytes
    sealed: bytes | None
    created_at: float


@dataclass(frozen=True)
class Ending:
    """A terminal result, to be published once.

    It counts only if ``owner`` still runs attempt ``attempt`` of the rollout.
    ``expires_at`` is ``None`` while something of the rollout still runs.
    """

    rollout_id: str
    owner: str
    attempt: int
    result: bytes
    outcome: ExecutionResult
    reward: float | None
    at: float
    expires_at: float | None
    callbacks: tuple[NewCallback, ...] = ()

    @property
    def summary(self) -> bytes:
        """What status and lists tell of it."""
        category = self.outcome.err_category
        return json.dumps(
            {
                "reward": self.reward,
                "err_message": self.outcome.err_message,
                "err_category": None if category is None else category.value,
            }
        ).encode()


@dataclass(frozen=True)
class Event:
    """A change, in the order of commits: ``seq`` grows."""

    seq: int
    rollout_id: str
    status: str
    at: float


@dataclass(frozen=True)
class Pruned:
    """What a pruning removed."""

    results: int = 0
    records: int = 0
    ids: tuple[str, ...] = field(default=(), repr=False)
