"""The machines whose engines run containers, as far as a sandbox has to know them.

``local`` is this one; ``harbor_backend.places.ssh`` has others, over SSH.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from harbor_backend.core.trial import Lendable
from harbor_backend.places.docker.engine import Engine
from harbor_backend.places.docker.namespaces import Namespace


class ChannelDir:
    """A directory for one sandbox's sockets: ``here``, and ``there`` as its engine mounts it."""

    def __init__(self, here: Path, there: str) -> None:
        self.here = here
        self.there = there

    async def offer(self, socket: Path) -> None:
        """Make a socket that was made ``here`` reachable ``there``."""


class SandboxHost(ABC):
    """One machine, for one sandbox."""

    engine: Engine
    labels: Mapping[str, str]
    """Of every container that it runs for us, beside those that all have."""

    note: str | None = None
    """What the record of a trial on it says."""

    can_mount: bool
    """Whether runtime and sockets can be mounted into its containers."""

    @abstractmethod
    def channel_dir(self) -> AbstractAsyncContextManager[ChannelDir]:
        """A directory for the sockets of a sandbox, while the block runs."""

    @abstractmethod
    async def runtime(self, local: Path) -> str:
        """Where a runtime of this machine lies there."""

    @abstractmethod
    async def borrow_namespace(self, network: str, runtime: Path) -> Namespace | None:
        """A network namespace that is lent; ``None`` where the engine makes one each time."""

    @abstractmethod
    def telling_host_from_sandbox(self) -> AbstractAsyncContextManager[None]:
        """Say of a failure in the block whether the host was at fault."""

    @abstractmethod
    async def is_lost(self) -> bool:
        """Whether the host cannot be reached any more."""

    @abstractmethod
    def abandon(self, container: str) -> None:
        """Have a container removed once the lost host is back."""

    @abstractmethod
    def enter(self, container: str, shell: str) -> list[str]:
        """The command that opens a shell in a container."""


class SandboxHosts(ABC):
    """All machines that a place may use."""

    async def start(self) -> None:
        """Connect them, and begin to remove what dead processes of ours left there. Idempotent."""

    async def aclose(self) -> None:
        """Let go of them."""

    @abstractmethod
    def lease(self, trial: str) -> AbstractAsyncContextManager[SandboxHost]:
        """A machine for a sandbox of this trial; a trial's sandboxes share one.

        Raises:
            HarborBackendError: none can be used.
        """

    @abstractmethod
    async def engines(self) -> list[Engine]:
        """The engines of those that can be used now.

        Raises:
            HarborBackendError: there are none.
        """

    def report(self) -> list[dict[str, Any]] | None:
        """The state of each, where they have one."""
        return None


SANDBOX_HOSTS = Lendable[SandboxHosts]("hosts")
