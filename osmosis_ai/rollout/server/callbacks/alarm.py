"""Pauses that end early when there is a reason."""

import asyncio


class Alarm:
    """Sleepers by receiver. A receiver that works again wakes its own, closing wakes all."""

    def __init__(self) -> None:
        self._sleepers: dict[str, set[asyncio.Future[None]]] = {}

    async def sleep(self, seconds: float, where: str = "") -> None:
        """Wait; less when ``where``, or everybody, is woken."""
        bell = asyncio.get_running_loop().create_future()
        fellows = self._sleepers.setdefault(where, set())
        fellows.add(bell)
        try:
            await asyncio.wait([bell], timeout=max(0.0, seconds))
        finally:
            fellows.discard(bell)
            if not fellows and self._sleepers.get(where) is fellows:
                del self._sleepers[where]

    def wake(self, where: str) -> None:
        """End the pauses of those who sleep for ``where``."""
        for bell in self._sleepers.get(where, ()):
            if not bell.done():
                bell.set_result(None)

    def wake_all(self) -> None:
        """End every pause."""
        for where in self._sleepers:
            self.wake(where)
