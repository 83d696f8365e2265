"""The hosts of a cluster as a Docker place uses them."""

import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harbor_backend.errors import SandboxLostError
from harbor_backend.places import labels
from harbor_backend.places.channel_dir import make_channel_dir
from harbor_backend.places.docker.engine import Engine, EngineError
from harbor_backend.places.docker.hosts import ChannelDir, SandboxHost, SandboxHosts
from harbor_backend.places.docker.namespaces import Namespace
from harbor_backend.places.ssh.errors import HostLostError, HostRefusedError
from harbor_backend.places.ssh.fleet import Fleet, Lease, use_fleet
from harbor_backend.places.ssh.settings import FleetSettings

if TYPE_CHECKING:
    from harbor_backend.places.ssh.link import Link

logger = logging.getLogger(__name__)


class SshHosts(SandboxHosts):
    """Hosts with one ssh connection each: engine, supervisors and models go through it.

    So a sandbox needs no network there either, holds no credential, and ends when
    the connection does. A trial takes one slot of one host.
    """

    def __init__(self, settings: FleetSettings) -> None:
        self._settings = settings
        self._fleet: Fleet | None = None
        self._resources = AsyncExitStack()

    async def start(self) -> None:
        """Begin to connect."""
        await self._started()

    async def aclose(self) -> None:
        """End the connections, unless another backend uses them too."""
        await self._resources.aclose()

    @asynccontextmanager
    async def lease(self, trial: str) -> AsyncIterator[SandboxHost]:
        """See ``SandboxHosts``; waits for a slot."""
        fleet = await self._started()
        async with fleet.lease(trial) as lease:
            yield SshHost(lease, self._settings.ssh_config)

    async def engines(self) -> list[Engine]:
        """See ``SandboxHosts``; waits until each host was tried."""
        return [link.engine for link in await (await self._started()).links()]

    def report(self) -> list[dict[str, Any]] | None:
        """See ``SandboxHosts``."""
        return None if self._fleet is None else self._fleet.report()

    async def _started(self) -> Fleet:
        if self._fleet is None:
            self._fleet = await self._resources.enter_async_context(use_fleet(self._settings))
        return self._fleet


class SshHost(SandboxHost):
    """One host, for one sandbox.

    A host that is lost ends its trials with ``HostLostError``: nothing is known
    about the agent, and the rollout may be run again.
    """

    can_mount = True

    def __init__(self, lease: Lease, ssh_config: str | None) -> None:
        self._host = lease.host
        self._link: Link = lease.link
        self._ssh_config = ssh_config
        self.engine = lease.link.engine
        self.labels: Mapping[str, str] = {labels.HOST: lease.host.mark}
        self.note = f"ran on host {lease.host.name}"

    @asynccontextmanager
    async def channel_dir(self) -> AsyncIterator[ChannelDir]:
        """See ``SandboxHost``; sockets are forwarded one by one."""
        here = make_channel_dir()
        async with AsyncExitStack() as stack:
            stack.callback(shutil.rmtree, here, ignore_errors=True)
            there = self._link.new_dir()
            # Before it is made: whoever is cancelled meanwhile leaves nothing.
            stack.push_async_callback(self._undo, self._link.remove_dirs, [there])
            await self._link.make_dir(there)
            yield _ForwardedDir(here, there, self, stack)

    async def runtime(self, local: Path) -> str:
        """See ``SandboxHost``; copied once per content."""
        return await self._link.runtime(local)

    async def borrow_namespace(self, network: str, runtime: Path) -> Namespace | None:
        """See ``SandboxHost``: a holder could not be reached from here."""
        return None

    @asynccontextmanager
    async def telling_host_from_sandbox(self) -> AsyncIterator[None]:
        """See ``SandboxHost``; the host itself is asked."""
        try:
            yield
        except HostLostError:
            raise
        except (EngineError, SandboxLostError) as exc:
            if (reason := await self._link.ping()) is None:
                raise
            raise HostLostError(
                f"Host {self._link.host_name} was lost while it ran the sandbox: {reason}. That "
                "says nothing about the agent: the rollout may be run again"
            ) from exc

    async def is_lost(self) -> bool:
        """See ``SandboxHost``."""
        return await self._link.ping() is not None

    def abandon(self, container: str) -> None:
        """See ``SandboxHost``."""
        self._host.abandon(container)

    def enter(self, container: str, shell: str) -> list[str]:
        """See ``SandboxHost``."""
        options = [] if self._ssh_config is None else ["-F", self._ssh_config]
        command = ["docker", "exec", "-it", container, shell]
        return ["ssh", *options, "-t", self._link.host_name, *command]

    async def forward(self, there: str, here: Path, stack: AsyncExitStack) -> None:
        """Let a socket path of the host lead to a socket here, until ``stack`` closes."""
        stack.push_async_callback(self._undo, self._link.cancel_forward, there, here)
        await self._link.forward(there, here)

    async def _undo(self, undo: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Undo something on the host; a lost one has nothing to undo."""
        try:
            await undo(*arguments)
        except (HostLostError, HostRefusedError) as exc:
            logger.debug("Not undone on host %s: %s", self._link.host_name, exc)


class _ForwardedDir(ChannelDir):
    """A directory on the host whose sockets lead here."""

    def __init__(self, here: Path, there: str, host: SshHost, stack: AsyncExitStack) -> None:
        super().__init__(here, there)
        self._host = host
        self._stack = stack

    async def offer(self, socket: Path) -> None:
        """See ``ChannelDir``."""
        await self._host.forward(f"{self.there}/{socket.name}", socket, self._stack)
