"""A sandbox's container: what the engine is asked for, and its life, whatever cancels it."""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harbor_backend.errors import SandboxLostError
from harbor_backend.places import labels
from harbor_backend.places.docker.ending import last_words
from harbor_backend.places.docker.engine import EngineError
from harbor_backend.places.docker.executor import Executor
from harbor_backend.places.docker.hosts import SandboxHost
from harbor_backend.places.docker.namespaces import Namespace
from harbor_backend.places.docker.walls import Walls
from harbor_backend.places.instance import instance_id

_EXPLAIN_SEC = 10.0


@dataclass(frozen=True)
class ContainerSpec:
    """What of a container differs from one sandbox to the next.

    ``command`` is the supervisor's, run as root, or ``None``: then the image's own entry
    point runs as the image's user, and is given a command that only waits. ``env`` is set
    over the image's. ``cpus`` bounds it where it is given; of ``memory_mb``, ``walls`` tell
    what none means, and 0 is without a limit.
    """

    image: str
    command: Sequence[str] | None
    network: str
    mounts: Sequence[Mapping[str, Any]]
    rollout_id: str
    walls: Walls
    env: Mapping[str, str] = field(default_factory=dict)
    cpus: float | None = None
    memory_mb: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def config(self) -> dict[str, Any]:
        """The body of the engine's call."""
        return {
            "Image": self.image,
            "Cmd": ["sh", "-c", "sleep infinity"] if self.command is None else list(self.command),
            "User": "" if self.command is None else "0:0",
            "Env": [f"{name}={value}" for name, value in self.env.items()],
            "Labels": {
                labels.SANDBOX: "docker",
                labels.INSTANCE: instance_id(),
                labels.ROLLOUT: self.rollout_id,
                **self.labels,
            },
            "HostConfig": {
                "NetworkMode": self.network,
                "Mounts": list(self.mounts),
                "NanoCpus": int(self.cpus * 1e9) if self.cpus else 0,
                **self.walls.host_config(self.memory_mb),
                "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m"}},
            },
        }


class Container:
    """One container on one host; ``name`` is the engine's, for people.

    ``namespace`` is lent to it: nobody else gets that while it may still run.
    """

    def __init__(
        self,
        host: SandboxHost,
        session_id: str,
        namespace: Namespace | None,
        logger: logging.Logger,
    ) -> None:
        self.name = labels.container_name(session_id, uuid.uuid4().hex[:8])
        self.id = ""
        self._host = host
        self._namespace = namespace
        self._logger = logger
        self._loss: SandboxLostError | None = None

    async def create(self, spec: ContainerSpec) -> None:
        """Create it; a cancelled creation is waited for and undone.

        Raises:
            EngineError: the engine refuses; 404 when the image is gone.
        """
        if self._namespace is not None:
            self._namespace.occupied = True
        creation = asyncio.ensure_future(self._host.engine.create(self.name, spec.config()))
        try:
            self.id = await asyncio.shield(creation)
        except asyncio.CancelledError:
            done = (await asyncio.gather(creation, return_exceptions=True))[0]
            if isinstance(done, str):
                await self._remove(done)
            raise

    async def start(self) -> None:
        """Start it."""
        await self._host.engine.start(self.id)

    def changes(self) -> AsyncIterator[bytes]:
        """What the engine says of the paths that are not as in its image, as JSON."""
        return self._host.engine.stream("GET", f"/containers/{self.id}/changes")

    async def explained(self, exc: SandboxLostError) -> SandboxLostError:
        """A loss of the sandbox with what the engine knows of it, which is asked once."""
        if type(exc) is not SandboxLostError or not self.id or exc is self._loss:
            return exc
        if self._loss is None:
            known = "The engine does not say what became of it"
            with contextlib.suppress(EngineError, TimeoutError):
                async with asyncio.timeout(_EXPLAIN_SEC):
                    known = await last_words(self._host.engine, self.id)
            self._loss = SandboxLostError(f"{exc}. {known}")
        return self._loss

    async def end(self, executor: Executor | None, *, delete: bool) -> None:
        """Remove it by force, or leave it running under a name that is kept; once.

        On a host that is lost it is done when the host is back.
        """
        if not self.id:
            return
        try:
            if delete:
                await self._remove(self.id)
            else:
                await self._keep(self.id, executor)
        except (EngineError, SandboxLostError) as exc:
            if not await self._host.is_lost():
                raise
            if delete:
                self._host.abandon(self.id)
            self._logger.warning("The sandbox %s is left on its host: %s", self.name, exc)
        self.id = ""  # not before: an end that was cancelled is done by the next one

    async def _remove(self, identifier: str) -> None:
        gone = await self._host.engine.remove(identifier)
        if gone and self._namespace is not None:
            self._namespace.occupied = False

    async def _keep(self, identifier: str, executor: Executor | None) -> None:
        if executor is not None:
            await executor.keep()
        if self._namespace is not None:
            self._namespace.keep()
        kept = self.name.replace(labels.PREFIX, labels.KEPT_PREFIX, 1)
        path = f"/containers/{identifier}/rename"
        await self._host.engine.call("POST", path, params={"name": kept})
        self.name = kept
        self._logger.info("The sandbox was kept: docker exec -it %s sh", kept)
