"""Hosts that are reached over real sshds of this machine, and backends that use them."""

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from harbor_backend.places.choose import SKY_DOCKER
from tests.harbor_backend.places.ssh.sshd import Sshd
from tests.harbor_backend.rollouts.conftest import TEMPLATE, policy, project

__all__ = ["policy", "project"]  # fixtures

DOCKER_SOCKET = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")

type MakeHost = Callable[..., Sshd]
type Arguments = Callable[..., dict[str, Any]]
type MakeBackend = Callable[..., HarborBackend]


@pytest.fixture
def make_host(tmp_path: Path) -> Iterator[MakeHost]:
    """Starts an sshd under an alias; its sessions end with the test."""
    made: list[Sshd] = []

    def make(alias: str = "node", *options: str) -> Sshd:
        host = Sshd(tmp_path, f"{alias}-{uuid.uuid4().hex[:6]}")
        made.append(host)
        host.start(*options)
        return host

    yield make
    for host in made:
        host.die()


@pytest.fixture
def remote_dir(tmp_path: Path) -> Path:
    """The directory of runtimes on the hosts."""
    return tmp_path / "remote"


@pytest.fixture
def arguments(tmp_path: Path, remote_dir: Path) -> Arguments:
    """The arguments of an environment on these hosts."""

    def make(*hosts: Sshd, **others: Any) -> dict[str, Any]:
        config = tmp_path / f"ssh-{uuid.uuid4().hex[:6]}"
        config.write_text("".join(host.client_config() for host in hosts))
        return {
            "hosts": [host.alias for host in hosts],
            "ssh_config": str(config),
            "directory": str(remote_dir),
            "docker_socket": DOCKER_SOCKET,
            **others,
        }

    return make


@pytest.fixture
async def make_backend(
    anyio_backend: str, artifact_root: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[MakeBackend]:
    """Makes backends on hosts, which are looked at often; the template task by default."""
    monkeypatch.setattr("harbor_backend.places.ssh.host.HEALTH_SEC", 0.2)
    made: list[HarborBackend] = []

    def make(kwargs: dict[str, Any], n_concurrent: int = 4, **arguments: Any) -> HarborBackend:
        arguments.setdefault("tasks_dir", TEMPLATE)
        backend = HarborBackend(
            orchestrator=TrialQueue(n_concurrent=n_concurrent),
            environment_config=EnvironmentConfig(import_path=SKY_DOCKER, kwargs=kwargs),
            **arguments,
        )
        made.append(backend)
        return backend

    yield make
    for backend in made:
        await backend.shutdown()


class EngineProxy:
    """A socket that leads to the engine until it is closed: an engine that can be stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Answer."""
        self._server = await asyncio.start_unix_server(self._serve, self.path)

    async def stop(self) -> None:
        """Answer no more, and end what is open."""
        if self._server is not None:
            self._server.close()
            self.path.unlink(missing_ok=True)
            self._server = None
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            engine_reader, engine_writer = await asyncio.open_unix_connection(DOCKER_SOCKET)
            with contextlib.closing(writer), contextlib.closing(engine_writer):
                async with asyncio.TaskGroup() as group:
                    group.create_task(_pass_on(reader, engine_writer))
                    group.create_task(_pass_on(engine_reader, writer))
        except asyncio.CancelledError:
            if self._server is not None:
                raise
        finally:
            self._open.discard(task)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()


@pytest.fixture
async def engine_proxy(anyio_backend: str, private_temp: Path) -> AsyncIterator[EngineProxy]:
    """An engine that can be stopped; it is the machine's own behind a socket."""
    proxy = EngineProxy(private_temp / f"engine-{uuid.uuid4().hex[:6]}.sock")
    await proxy.start()
    yield proxy
    await proxy.stop()
