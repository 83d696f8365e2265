"""One fresh container per trial, on a host of a cluster."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from harbor_backend import labels
from harbor_backend.environments.channel import Command, RunResult, SandboxLostError
from harbor_backend.environments.docker import DockerEnvironment
from harbor_backend.environments.engine import Engine, EngineError
from harbor_backend.environments.images import Image
from harbor_backend.environments.mounts import bind
from harbor_backend.sky_docker.errors import HostLostError, HostRefusedError
from harbor_backend.sky_docker.fleet import Lease, use_fleet
from harbor_backend.sky_docker.link import Link
from harbor_backend.sky_docker.settings import fleet_settings
from harbor_backend.trials import find_trial
from osmosis_ai.rollout.container.files import CHANNEL_DIR, RUNTIME_DIR

_HOST_ARGUMENTS = ("cluster", "hosts", "slots", "ssh_config", "docker_socket", "directory")


class SkyDockerEnvironment(DockerEnvironment):
    """``DockerEnvironment`` on the hosts of a cluster that ``sky launch`` made, or of any other.

    Hosts are reached over SSH, with one connection for each: the engine's socket,
    the supervisor's and the model's go through it. So a sandbox needs no network
    here either, holds no credential, and ends when the connection does. A trial
    takes one slot of one host. The runtime is copied to a host once per content;
    mounts name directories of the host.

    A host that is lost ends its trials with ``HostLostError``: nothing is known
    about the agent, and the rollout may be run again. See ``fleet_settings`` for
    the arguments.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        own = {name: kwargs.pop(name) for name in _HOST_ARGUMENTS if name in kwargs}
        self._fleet_settings = fleet_settings(own)
        self._lease: Lease | None = None
        self._remote_dir: str | None = None
        self._remote_runtime: str | None = None
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        """The name of this kind of environment."""
        return "sky-docker"

    async def start(self, force_build: bool) -> None:
        """Wait for a slot, then see ``DockerEnvironment.start``.

        Raises:
            NoHostError: no host can be used.
            HostLostError: the host was lost meanwhile.
            HostRefusedError: it does not take the runtime, or a socket.
        """
        fleet = await self._stack.enter_async_context(use_fleet(self._fleet_settings))
        trial = self._trial_key or self.session_id
        self._lease = await self._stack.enter_async_context(fleet.lease(trial))
        self.logger.info("The sandbox %s is on host %s", self.session_id, self._lease.host.name)
        if self._trial_key is not None:
            find_trial(self._trial_key).note(f"ran on host {self._lease.host.name}")
        async with self._telling_host_from_sandbox():
            await super().start(force_build)

    async def stop(self, delete: bool) -> None:
        """See ``DockerEnvironment.stop``; on a lost host it is done when the host is back."""
        container, lease = self._container, self._lease
        try:
            await super().stop(delete)
        except (EngineError, SandboxLostError) as exc:
            if lease is None or await lease.link.ping() is None:
                raise
            if delete and container is not None:
                lease.host.abandon(container)
            self.logger.warning("The sandbox %s is left on its host: %s", self.name, exc)

    async def run(self, command: Command) -> RunResult:
        """See ``DockerEnvironment.run``."""
        async with self._telling_host_from_sandbox():
            return await super().run(command)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """See ``DockerEnvironment.upload_file``."""
        async with self._telling_host_from_sandbox():
            await super().upload_file(source_path, target_path)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """See ``DockerEnvironment.upload_dir``."""
        async with self._telling_host_from_sandbox():
            await super().upload_dir(source_dir, target_dir)

    async def attach(self) -> None:
        """Replace this process by a shell in the container."""
        command = ["docker", "exec", "-it", self.name, await self._find_shell()]
        config = self._fleet_settings.ssh_config
        options = [] if config is None else ["-F", config]
        os.execvp("ssh", ["ssh", *options, "-t", self._link.host_name, *command])

    async def _download(self, source: str, target: Path) -> None:
        async with self._telling_host_from_sandbox():
            await super()._download(source, target)

    @property
    def _link(self) -> Link:
        if self._lease is None:
            raise RuntimeError(f"The environment {self.session_id} has no host")
        return self._lease.link

    async def _reach_engine(self) -> Engine:
        return self._link.engine

    @property
    def _mounts_runtime(self) -> bool:
        return True

    async def _offer_runtime(self, runtime_dir: Path) -> None:
        self._remote_runtime = await self._link.runtime(runtime_dir)
        self._remote_dir = await self._link.make_dir()
        self._at_the_end(self._link.remove_dirs, [self._remote_dir])

    async def _offer_socket(self, socket: Path) -> None:
        there = f"{self._remote_dir}/{socket.name}"
        await self._link.forward(there, socket)
        self._at_the_end(self._link.cancel_forward, there, socket)

    def _runtime_mounts(self) -> list[dict[str, Any]]:
        return [
            bind(self._remote_dir, CHANNEL_DIR, read_only=True),
            bind(self._remote_runtime, RUNTIME_DIR, read_only=True),
        ]

    def _container_config(self, image: Image, *, supervised: bool) -> dict[str, Any]:
        config = super()._container_config(image, supervised=supervised)
        if self._lease is not None:
            config["Labels"][labels.HOST] = self._lease.host.mark
        return config

    def _at_the_end(self, undo: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Undo something on the host when the sandbox stops; a lost host has nothing to undo."""

        async def settle() -> None:
            try:
                await undo(*arguments)
            except (HostLostError, HostRefusedError) as exc:
                self.logger.debug("Not undone on host %s: %s", self._link.host_name, exc)

        self._stack.push_async_callback(settle)

    @asynccontextmanager
    async def _telling_host_from_sandbox(self) -> AsyncIterator[None]:
        """Say of a failure whether the host was at fault, by asking the host."""
        try:
            yield
        except HostLostError:
            raise
        except (EngineError, SandboxLostError) as exc:
            link = self._link
            if (reason := await link.ping()) is None:
                raise
            raise HostLostError(
                f"Host {link.host_name} was lost while it ran the sandbox: {reason}. That says "
                "nothing about the agent: the rollout may be run again"
            ) from exc
