"""One host of a fleet: connected again and again, watched, and filled up to its slots."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any

from harbor_backend.places.docker.engine import EngineError
from harbor_backend.places.ssh.errors import HostLostError, HostRefusedError
from harbor_backend.places.ssh.link import Link, open_link
from harbor_backend.places.ssh.settings import FleetSettings, HostSettings

logger = logging.getLogger(__name__)

HEALTH_SEC = 5.0
_FIRST_DELAY_SEC, _MAX_DELAY_SEC = 1.0, 60.0


class HostState(StrEnum):
    """What a host is good for.

    ``DRAINING``: it is connected but its engine does not answer, so it gets no
    new trial; those that it has may end. ``LOST``: not connected.
    """

    CONNECTING = "connecting"
    READY = "ready"
    DRAINING = "draining"
    LOST = "lost"


class Host:
    """A host and its state.

    ``changed`` is awaited whenever a waiting trial should look again. ``mark`` is a
    label of all sandboxes that it runs.
    """

    def __init__(
        self, settings: FleetSettings, own: HostSettings, changed: Callable[[], Awaitable[None]]
    ) -> None:
        self.name = own.destination
        self.slots = own.slots
        self.used = 0
        self.state = HostState.CONNECTING
        self.reason = ""
        self.link: Link | None = None
        self.was_ready = False
        self._settings = settings
        self._own = own
        self._changed = changed
        self.mark = uuid.uuid4().hex
        self._abandoned: set[str] = set()

    @property
    def free(self) -> int:
        """How many more trials it takes now."""
        return self.slots - self.used if self.state is HostState.READY else 0

    def report(self) -> dict[str, Any]:
        """What an operator wants to know."""
        report = {"host": self.name, "state": str(self.state), "slots": self.slots}
        return {**report, "used": self.used, "reason": self.reason or None}

    def abandon(self, container: str) -> None:
        """Have a sandbox that cannot be removed now removed once the host answers again."""
        self._abandoned.add(container)

    async def give_up(self, reason: str) -> None:
        """Call the host lost, and tell everybody who waits for it."""
        self.state, self.reason = HostState.LOST, reason
        await self._changed()

    async def run(self) -> None:
        """Keep the host connected until cancelled."""
        delay = _FIRST_DELAY_SEC
        while True:
            try:
                async with open_link(self._settings, self._own) as link:
                    # Its former trials ended with the former connection.
                    await link.remove_sandboxes(self.mark)
                    self._abandoned.clear()
                    delay = _FIRST_DELAY_SEC
                    await self._serve(link)
            except (HostLostError, HostRefusedError, OSError) as exc:
                logger.warning("Host %s is lost: %s; next try in %.0f s", self.name, exc, delay)
                await self.give_up(str(exc))
            await asyncio.sleep(delay)
            delay = min(delay * 2, _MAX_DELAY_SEC)

    async def _serve(self, link: Link) -> None:
        """Offer the host for as long as its connection lasts; ends with ``HostLostError``."""
        self.link, self.was_ready = link, True
        logger.info("Host %s is ready for %d trials", self.name, self.slots)
        ending = asyncio.ensure_future(link.ended())
        try:
            await self._turn(HostState.READY, "")
            while not (await asyncio.wait({ending}, timeout=HEALTH_SEC))[0]:
                wrong = await link.ping() or await self._tidy(link)
                if not ending.done():
                    await self._turn(HostState.DRAINING if wrong else HostState.READY, wrong or "")
            link.lost = "its ssh connection ended"
            raise HostLostError(link.lost)
        finally:
            ending.cancel()
            self.link = None

    async def _turn(self, state: HostState, reason: str) -> None:
        if state is not self.state and state is HostState.DRAINING:
            logger.warning("Host %s gets no new trials: %s", self.name, reason)
        elif state is not self.state and self.state is HostState.DRAINING:
            logger.info("Host %s gets trials again", self.name)
        self.state, self.reason = state, reason
        await self._changed()

    async def _tidy(self, link: Link) -> str | None:
        """Remove what was abandoned; returns why it cannot be done."""
        try:
            for container in list(self._abandoned):
                await link.engine.remove(container)
                self._abandoned.discard(container)
        except EngineError as exc:
            return str(exc)
        return None
