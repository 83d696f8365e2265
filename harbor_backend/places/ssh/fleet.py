"""All hosts of one configuration, and a place on one of them for each trial."""

import asyncio
import logging
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from harbor_backend.places.ssh.errors import NoHostError
from harbor_backend.places.ssh.host import Host, HostState
from harbor_backend.places.ssh.link import Link
from harbor_backend.places.ssh.settings import FleetSettings

logger = logging.getLogger(__name__)

RECONNECT_SEC = 60.0
"""How long a trial waits for a fleet of which no host is connected any more."""


@dataclass(eq=False)
class Lease:
    """One trial's slot on a host, for all its sandboxes."""

    host: Host
    link: Link
    users: int = 1


class Fleet:
    """Hosts that are kept connected while somebody uses them. See ``use_fleet``."""

    def __init__(self, settings: FleetSettings) -> None:
        self.users = 0
        self._news = asyncio.Condition()
        self.hosts = [Host(settings, own, self._look_again) for own in settings.hosts]
        self._leases: dict[str, Lease] = {}
        self._running: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def lease(self, trial: str) -> AsyncIterator[Lease]:
        """Give a trial its slot: one, however many sandboxes it has, on the emptiest host.

        Waits while all are taken. A trial whose host was lost gets another.

        Raises:
            NoHostError: no host can be used.
        """
        lease = self._leases.get(trial)
        if lease is None or lease.link.lost is not None:
            lease = self._leases[trial] = await self._slot()
        else:
            lease.users += 1
        try:
            yield lease
        finally:
            await asyncio.shield(self._give_back(trial, lease))

    async def links(self) -> list[Link]:
        """Return the connected hosts once each was tried.

        Raises:
            NoHostError: there is none.
        """
        async with self._news:
            await self._news.wait_for(lambda: not self._any(HostState.CONNECTING))
        links = [host.link for host in self.hosts if host.link is not None]
        if not links:
            raise NoHostError(self._why())
        return links

    def report(self) -> list[dict[str, Any]]:
        """The state of each host."""
        return [host.report() for host in self.hosts]

    def open(self) -> None:
        """Begin to connect."""
        self._running = asyncio.create_task(self._run(), name="osmosis-hosts")

    async def close(self) -> None:
        """End all connections."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for host in self.hosts:
                    group.create_task(host.run(), name=f"osmosis-host-{host.name}")
        except ExceptionGroup as group:
            logger.exception("The hosts are not looked after any more")
            for host in self.hosts:  # whoever waits for one must not wait for ever
                await host.give_up(repr(group.exceptions[0]))

    async def _slot(self) -> Lease:
        give_up_at: float | None = None
        async with self._news:
            while True:
                host = max(self.hosts, key=lambda host: host.free)
                if host.free > 0 and host.link is not None:
                    host.used += 1
                    return Lease(host, host.link)
                connected = self._any(HostState.READY, HostState.DRAINING, HostState.CONNECTING)
                if not connected and not any(host.was_ready for host in self.hosts):
                    raise NoHostError(self._why())
                now = asyncio.get_running_loop().time()
                give_up_at = None if connected else (give_up_at or now + RECONNECT_SEC)
                try:
                    async with asyncio.timeout_at(give_up_at):
                        await self._news.wait()
                except TimeoutError:
                    raise NoHostError(self._why()) from None

    async def _give_back(self, trial: str, lease: Lease) -> None:
        lease.users -= 1
        if lease.users:
            return
        if self._leases.get(trial) is lease:
            del self._leases[trial]
        lease.host.used -= 1
        await self._look_again()

    async def _look_again(self) -> None:
        async with self._news:
            self._news.notify_all()

    def _any(self, *states: HostState) -> bool:
        return any(host.state in states for host in self.hosts)

    def _why(self) -> str:
        reasons = "; ".join(f"{host.name}: {host.reason or host.state}" for host in self.hosts)
        return f"No host can run a trial now ({reasons})"


_fleets: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[FleetSettings, Fleet]] = (
    weakref.WeakKeyDictionary()
)


@asynccontextmanager
async def use_fleet(settings: FleetSettings) -> AsyncIterator[Fleet]:
    """Share the fleet of these settings in the running loop; its last user closes it."""
    fleets = _fleets.setdefault(asyncio.get_running_loop(), {})
    if settings not in fleets:
        fleets[settings] = Fleet(settings)
        fleets[settings].open()
    fleet = fleets[settings]
    fleet.users += 1
    try:
        yield fleet
    finally:
        fleet.users -= 1
        if not fleet.users:
            del fleets[settings]
            await asyncio.shield(fleet.close())
