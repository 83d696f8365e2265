"""Network namespaces, lent to one sandbox after the other.

Making and removing a namespace costs an engine more than all the rest of a
container: it starts itself once more as a hook each time. A sandbox without
NET_ADMIN can change nothing of its namespace, and what listened in it dies with
the sandbox. So it is made once and used again, by one sandbox at a time, for an
hour at most, and only when no socket is left in it.

Each is held by a container that does nothing. It lives as long as a connection
to this process, so that none outlives it, however that ends.
"""

import asyncio
import contextlib
import io
import shutil
import socket
import tarfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harbor_backend.errors import SandboxStartError
from harbor_backend.places import labels
from harbor_backend.places.channel_dir import make_channel_dir
from harbor_backend.places.docker.engine import Engine, EngineError
from harbor_backend.places.docker.mounts import bind
from harbor_backend.places.instance import instance_id
from osmosis_ai.rollout.container.files import CHANNEL_DIR, RUNTIME_DIR, RUNTIME_PYTHON

HOSTNAME = "sandbox"

_START_TIMEOUT_SEC = 60
_SETTINGS = {"net.ipv4.tcp_max_tw_buckets": "0"}
"""On a loopback, no packet comes late: a closed connection's port is free at once."""
_MAX_FREE = 64
_MAX_AGE_SEC = 3600
_IMAGE = f"{labels.PREFIX}-namespace:1"
_SOCKET = "held.sock"
# It ends with the connection, unless it is told to stay; asked, it says whether the namespace
# has sockets that were not there when it began: the engine's own name server has some.
_HOLD = """
import signal, socket, sys

def sockets():
    found = set()
    for kind in "tcp", "tcp6", "udp", "udp6", "udplite", "raw", "raw6", "icmp", "packet":
        try:
            with open("/proc/net/" + kind) as table:
                found.update((kind, *line.split()[1:4]) for line in table.readlines(65536)[1:])
        except OSError:
            pass
    return found

before = sockets()
host = socket.socket(socket.AF_UNIX)
host.connect(sys.argv[1])
while asked := host.recv(1):
    if asked == b"k":
        signal.pause()
    host.sendall(b"1" if sockets() <= before else b"0")
"""
_ANSWER_SEC = 5.0
# What an engine writes for each container, and shares among those of one namespace.
_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
_MAX_FILE_BYTES = 64 * 1024

type _Kind = tuple[str, str]


@dataclass(eq=False)
class Namespace:
    """One namespace; ``occupied`` while a container may still run in it.

    ``files`` holds what the engine wrote into its holder: ``{path: content}``.
    """

    kind: _Kind
    container: str
    connection: socket.socket
    files: Mapping[str, bytes]
    occupied: bool = False
    made_at: float = field(default_factory=time.monotonic)

    @property
    def network_mode(self) -> str:
        """What a container's configuration names to live in it."""
        return f"container:{self.container}"

    @property
    def usable(self) -> bool:
        """Whether its holder still runs, and is not too old to know the host's resolvers."""
        if time.monotonic() - self.made_at > _MAX_AGE_SEC:
            return False
        try:
            return bool(self.connection.recv(1, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return True
        except OSError:
            return False

    async def is_empty(self) -> bool:
        """Whether no socket of the last sandbox is in it, not even one that waits for its end."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_ANSWER_SEC):
                await loop.sock_sendall(self.connection, b"?")
                return await loop.sock_recv(self.connection, 1) == b"1"
        except (OSError, TimeoutError):
            self.close()
            return False

    def keep(self) -> None:
        """Let the holder outlive this process, for a sandbox that does."""
        with contextlib.suppress(OSError):  # it is gone already
            self.connection.send(b"k")

    def close(self) -> None:
        """End the holder; the engine removes it."""
        self.connection.close()

    def give_back(self) -> None:
        """Make it free for the next sandbox, unless something may still run in it."""
        free = _free.setdefault(self.kind, [])
        if self.occupied or len(free) >= _MAX_FREE:
            self.close()
        else:
            free.append(self)

    def own_files(self, folder: Path) -> dict[str, Path]:
        """Write a sandbox's own copy of ``files`` to a folder; returns ``{path: copy}``.

        Without them, the sandboxes of one namespace would share and could change its holder's.
        """
        copies = {path: folder / Path(path).name for path in self.files}
        for path, copy in copies.items():
            copy.write_bytes(self.files[path])
            copy.chmod(0o644)
        return copies


_free: dict[_Kind, list[Namespace]] = {}


async def borrow_namespace(engine: Engine, network: str, runtime_dir: Path) -> Namespace:
    """Return a namespace in a network that no other sandbox uses, until ``give_back()``.

    Args:
        network: the engine's name of it: ``none`` has a loopback only. It must be there.
        runtime_dir: any runtime; its interpreter runs the holder.

    Raises:
        EngineError: the engine does not answer, or refuses the holder.
        SandboxStartError: the holder did not come up.
    """
    free = _free.setdefault((engine.host, network), [])
    if (namespace := await _proved_empty(free)) is not None:
        return namespace
    making = asyncio.ensure_future(_make(engine, network, runtime_dir))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        making.add_done_callback(_keep_for_the_next)
        raise


async def _proved_empty(free: list[Namespace]) -> Namespace | None:
    """Take one that nothing is left in; those where something is stay for later."""
    waiting: list[Namespace] = []
    try:
        while free:
            namespace = free.pop()
            if not namespace.usable:
                namespace.close()
            elif await namespace.is_empty():
                return namespace
            else:
                waiting.append(namespace)
    finally:
        free.extend(waiting)
    return None


def _keep_for_the_next(making: asyncio.Future[Namespace]) -> None:
    if not making.cancelled() and making.exception() is None:
        making.result().give_back()


async def _make(engine: Engine, network: str, runtime_dir: Path) -> Namespace:
    with _listening() as (server, folder):
        name = f"{labels.PREFIX}-namespace-{uuid.uuid4().hex[:12]}"
        container = await _create(engine, name, _config(network, runtime_dir, folder))
        try:
            await engine.start(container)
            connection = await _connection(server)
            files = {path: await _read(engine, container, path) for path in _FILES}
        except BaseException:
            await engine.remove(container)
            raise
    return Namespace((engine.host, network), container, connection, files)


async def _connection(server: socket.socket) -> socket.socket:
    try:
        async with asyncio.timeout(_START_TIMEOUT_SEC):
            connection, _ = await asyncio.get_running_loop().sock_accept(server)
    except TimeoutError as exc:
        raise SandboxStartError(
            f"The holder of a network namespace did not come up within {_START_TIMEOUT_SEC}s: is "
            "the engine overloaded? (docker ps, and its log)"
        ) from exc
    return connection


@contextmanager
def _listening() -> Iterator[tuple[socket.socket, Path]]:
    """A socket in a directory of its own; both are gone once the holder has connected."""
    folder = make_channel_dir()
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.setblocking(False)
            server.bind(str(folder / _SOCKET))
            (folder / _SOCKET).chmod(0o666)
            server.listen(1)
            yield server, folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _create(engine: Engine, name: str, config: dict[str, Any]) -> str:
    try:
        return await engine.create(name, config)
    except EngineError as exc:
        if exc.status != 404:
            raise
    await _import_image(engine)
    return await engine.create(name, config)


async def _import_image(engine: Engine) -> None:
    """Give the engine an image that holds nothing: the runtime brings its own libraries."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        folder = tarfile.TarInfo("etc")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(folder)
    repository, _, tag = _IMAGE.partition(":")
    await engine.call(
        "POST",
        "/images/create",
        params={"fromSrc": "-", "repo": repository, "tag": tag},
        content=archive.getvalue(),
    )


async def _read(engine: Engine, container: str, path: str) -> bytes:
    """Return the beginning of a file that the engine wrote into a container of ours."""
    stream = engine.stream("GET", f"/containers/{container}/archive", params={"path": path})
    archive = io.BytesIO(b"".join([chunk async for chunk in stream]))
    with tarfile.open(fileobj=archive) as tar:
        file = tar.extractfile(tar.getmembers()[0])
        return b"" if file is None else file.read(_MAX_FILE_BYTES)


def _config(network: str, runtime_dir: Path, folder: Path) -> dict[str, Any]:
    return {
        "Image": _IMAGE,
        "Hostname": HOSTNAME,
        "Entrypoint": [RUNTIME_PYTHON, "-I", "-S", "-c", _HOLD, f"{CHANNEL_DIR}/{_SOCKET}"],
        "Labels": {labels.NAMESPACE: instance_id()},
        "HostConfig": {
            "NetworkMode": network,
            "Sysctls": _SETTINGS if network == "none" else {},
            "AutoRemove": True,
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "Mounts": [
                bind(runtime_dir, RUNTIME_DIR, read_only=True),
                bind(folder, CHANNEL_DIR, read_only=True),
            ],
        },
    }
