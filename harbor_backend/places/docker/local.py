"""This machine, with its own engine or the one that ``DOCKER_HOST`` names."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path

from harbor_backend.places.channel_dir import make_channel_dir
from harbor_backend.places.docker.engine import Engine, EngineError, shared_engine
from harbor_backend.places.docker.hosts import ChannelDir, SandboxHost, SandboxHosts
from harbor_backend.places.docker.namespaces import Namespace, borrow_namespace
from harbor_backend.places.docker.reaper import reap

logger = logging.getLogger(__name__)

_SETTLE_SEC = 10.0
_ANSWER_SEC = 10.0


class LocalHost(SandboxHost):
    """This machine's own engine, or the one that ``DOCKER_HOST`` names."""

    labels: Mapping[str, str] = {}

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.can_mount = engine.is_local

    @asynccontextmanager
    async def channel_dir(self) -> AsyncIterator[ChannelDir]:
        """See ``SandboxHost``; here and there are one directory."""
        folder = make_channel_dir()
        try:
            yield ChannelDir(folder, str(folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def runtime(self, local: Path) -> str:
        """See ``SandboxHost``."""
        return str(local)

    async def borrow_namespace(self, network: str, runtime: Path) -> Namespace | None:
        """See ``SandboxHost``."""
        return await borrow_namespace(self.engine, network, runtime) if self.can_mount else None

    def telling_host_from_sandbox(self) -> AbstractAsyncContextManager[None]:
        """See ``SandboxHost``; an engine's failure says itself what failed."""
        return nullcontext()

    async def is_lost(self) -> bool:
        """See ``SandboxHost``: this process runs on it."""
        return False

    def abandon(self, container: str) -> None:
        """See ``SandboxHost``; never lost."""

    def enter(self, container: str, shell: str) -> list[str]:
        """See ``SandboxHost``."""
        return ["docker", "exec", "-it", container, shell]


class LocalHosts(SandboxHosts):
    """This machine alone."""

    def __init__(self) -> None:
        self._reaping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to remove the sandboxes of dead processes of ours, once."""
        if self._reaping is None:
            self._reaping = asyncio.create_task(_reap(), name="osmosis-reaper")

    async def aclose(self) -> None:
        """Wait a while for what is being removed."""
        if self._reaping is None:
            return
        await asyncio.wait([self._reaping], timeout=_SETTLE_SEC)
        self._reaping.cancel()
        await asyncio.gather(self._reaping, return_exceptions=True)

    @asynccontextmanager
    async def lease(self, trial: str) -> AsyncIterator[SandboxHost]:
        """See ``SandboxHosts``."""
        yield LocalHost(shared_engine())

    async def engines(self) -> list[Engine]:
        """See ``SandboxHosts``."""
        engine = shared_engine()
        await engine.call("GET", "/version", timeout=_ANSWER_SEC)
        return [engine]


async def _reap() -> None:
    try:
        await reap(shared_engine())
    except EngineError as exc:  # the first trial reports it better
        logger.warning("Sandboxes of ended processes were not looked for: %s", exc)
