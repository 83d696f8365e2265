"""How many bytes of bodies a rollout's calls may hold together."""

from collections.abc import Iterator
from contextlib import contextmanager


class Holding:
    """The bytes that one rollout's calls hold; each call gives back what it took."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held = 0

    @property
    def held(self) -> int:
        """The bytes held at present."""
        return self._held

    @contextmanager
    def call(self) -> Iterator["Share"]:
        """What one call holds while the block runs."""
        share = Share(self)
        try:
            yield share
        finally:
            self._held -= share.size

    def _take(self, size: int) -> bool:
        if self._held + size > self.limit:
            return False
        self._held += size
        return True


class Share:
    """What one call holds."""

    def __init__(self, holding: Holding) -> None:
        self._holding = holding
        self.size = 0

    @property
    def limit(self) -> int:
        """What all calls of the rollout may hold together."""
        return self._holding.limit

    def take(self, size: int) -> bool:
        """Hold more; returns whether there is room."""
        if not self._holding._take(size):
            return False
        self.size += size
        return True
