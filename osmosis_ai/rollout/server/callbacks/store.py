"""What the outbox needs from whoever keeps callbacks across restarts."""

from collections.abc import Sequence
from typing import Protocol

from osmosis_ai.rollout.server.callbacks.entries import Callback, CallbackKind, Pending


class CallbackStore(Protocol):
    """Keeps callbacks until they are delivered or given up. Every change is durable on return."""

    async def add(self, callback: Callback) -> bool:
        """Keep a new callback; ``False``, changing nothing, if its rollout had one of its kind.

        That holds also for one delivered or failed already.
        """

    async def pending(self) -> Sequence[Pending]:
        """The callbacks that this server has to deliver, in any order."""

    async def load(self, rollout_id: str, kind: CallbackKind) -> Callback | None:
        """The whole callback; ``None`` when it is not pending, or not this server's, any more."""

    async def record_attempt(
        self,
        rollout_id: str,
        kind: CallbackKind,
        *,
        attempts: int,
        next_attempt_at: float,
        problem: str,
    ) -> None:
        """Note an attempt that did not work; ``attempts`` is the count so far."""

    async def delivered(self, rollout_id: str, kind: CallbackKind) -> None:
        """Note that the trainer has it; the body is not needed any more."""

    async def failed(self, rollout_id: str, kind: CallbackKind, problem: str) -> None:
        """Note that it is given up, and why."""
