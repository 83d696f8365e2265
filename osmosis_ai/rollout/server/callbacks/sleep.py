"""Pauses that end early when there is a reason."""

from weakref import WeakValueDictionary

from osmosis_ai.rollout.server.wakeup import Wakeup, within


class WakeableSleep:
    """Sleepers by receiver. A receiver that works again wakes its own, closing wakes all."""

    def __init__(self) -> None:
        # Weak, so that a receiver is forgotten with the last who sleeps for it.
        self._receivers: WeakValueDictionary[str, Wakeup] = WeakValueDictionary()

    async def sleep(self, seconds: float, receiver: str = "") -> None:
        """Wait; less when ``receiver``, or everybody, is woken."""
        wakeup = self._receivers.setdefault(receiver, Wakeup())
        await within(wakeup.next, max(0.0, seconds))

    def wake(self, receiver: str) -> None:
        """End the pauses of those who sleep for a receiver."""
        wakeup = self._receivers.get(receiver)
        if wakeup is not None:
            wakeup.wake()

    def wake_all(self) -> None:
        """End every pause."""
        for wakeup in list(self._receivers.values()):
            wakeup.wake()
