"""A callback store in memory: what a durable one must do, for tests of the outbox alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from osmosis_ai.rollout.server.callbacks import Callback, CallbackKind, Pending

type Key = tuple[str, CallbackKind]


@dataclass
class MemoryStore:
    """Outlives an outbox, as a database outlives a process.

    Attributes:
        broken: how many of the next ends cannot be written.
    """

    kept: dict[Key, Callback] = field(default_factory=dict)
    ends: dict[Key, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    broken: int = 0

    async def add(self, callback: Callback) -> bool:
        key = (callback.rollout_id, callback.kind)
        if key in self.kept or key in self.ends:
            return False
        self.kept[key] = callback
        return True

    async def pending(self) -> Sequence[Pending]:
        return [callback.pending for callback in reversed(self.kept.values())]

    async def load(self, rollout_id: str, kind: CallbackKind) -> Callback | None:
        return self.kept.get((rollout_id, kind))

    async def record_attempt(
        self,
        rollout_id: str,
        kind: CallbackKind,
        *,
        attempts: int,
        next_attempt_at: float,
        problem: str,
    ) -> None:
        key = (rollout_id, kind)
        changed = replace(self.kept[key], attempts=attempts, next_attempt_at=next_attempt_at)
        self.kept[key] = changed
        self.problems.append(problem)

    async def delivered(self, rollout_id: str, kind: CallbackKind) -> None:
        self._end((rollout_id, kind), "delivered")

    async def failed(self, rollout_id: str, kind: CallbackKind, problem: str) -> None:
        self._end((rollout_id, kind), problem)

    def _end(self, key: Key, how: str) -> None:
        if self.broken:
            self.broken -= 1
            raise OSError("the disk is full")
        del self.kept[key]
        self.ends[key] = how
