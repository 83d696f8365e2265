"""The moments at which a server is killed, and what it was doing then."""

import asyncio
from collections import Counter

AT_RANDOM = "any time"
STARTING = "starting"
ADMISSION = "admission"
RUNNING = "running"
GRADING = "grading"
PUBLISHING = "publishing"
DELIVERY = "callback under way"
ACKNOWLEDGED = "callback acknowledged"

MOMENTS = (
    AT_RANDOM,
    STARTING,
    ADMISSION,
    RUNNING,
    GRADING,
    PUBLISHING,
    DELIVERY,
    ACKNOWLEDGED,
)


class Moments:
    """Lets one task wait until another one sees something happen."""

    def __init__(self) -> None:
        self._awaited: dict[str, asyncio.Event] = {}

    def happened(self, moment: str) -> None:
        """Somebody saw it."""
        if event := self._awaited.get(moment):
            event.set()

    async def wait(self, moment: str, timeout_sec: float) -> bool:
        """Wait for the next time; ``False`` when it does not come."""
        event = self._awaited[moment] = asyncio.Event()
        try:
            async with asyncio.timeout(timeout_sec):
                await event.wait()
        except TimeoutError:
            return False
        finally:
            del self._awaited[moment]
        return True


class Census:
    """How many rollouts were where, counted at each kill."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.caught: Counter[str] = Counter()

    def move(self, before: str | None, after: str | None) -> None:
        """A rollout went from one place to another."""
        if before is not None:
            self.now[before] -= 1
        if after is not None:
            self.now[after] += 1

    def count(self) -> None:
        """A kill happens now."""
        self.caught += self.now
