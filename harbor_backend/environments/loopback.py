"""Network namespaces that hold a loopback only, lent to one sandbox after the other.

Making and removing a namespace costs an engine more than all the rest of a
container (it starts itself once more as a hook each time). A namespace without
a network has nothing in it that a sandbox without NET_ADMIN could change, and
what listened in it dies with the sandbox: so it is made once and used again,
by one sandbox at a time.

Each is held by a container that does nothing. It lives as long as a connection
to this process, so that none outlives its engine, however that ends.
"""

import asyncio
import io
import shutil
import socket
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harbor_backend import labels
from harbor_backend.environments.channel_dir import make_channel_dir
from harbor_backend.environments.engine import Engine, EngineError
from harbor_backend.instance import instance_id
from osmosis_ai.rollout.container.files import CHANNEL_DIR, RUNTIME_DIR, RUNTIME_PYTHON

HOSTNAME = "sandbox"

_START_TIMEOUT_SEC = 60
_MAX_FREE = 64
_IMAGE = f"{labels.PREFIX}-loopback:1"
_SOCKET = "held.sock"
_HOLD = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)"
# What an engine writes for a container without a network.
_FILES = {
    "hosts": "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n",
    "hostname": f"{HOSTNAME}\n",
    "resolv.conf": "",
}

_free: dict[str, list["Loopback"]] = {}


@dataclass(eq=False)
class Loopback:
    """One namespace; ``occupied`` while a container may still run in it."""

    host: str
    container: str
    connection: socket.socket
    occupied: bool = False

    @property
    def network_mode(self) -> str:
        """What a container's configuration names to live in it."""
        return f"container:{self.container}"

    @property
    def alive(self) -> bool:
        """Whether its holder still runs."""
        try:
            return bool(self.connection.recv(1, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self) -> None:
        """End the holder; the engine removes it."""
        self.connection.close()

    def give_back(self) -> None:
        """Make it free for the next sandbox, unless something may still run in it."""
        free = _free.setdefault(self.host, [])
        if self.occupied or len(free) >= _MAX_FREE:
            self.close()
        else:
            free.append(self)


async def borrow_loopback(engine: Engine, runtime_dir: Path) -> Loopback:
    """Return a namespace that no other sandbox uses, until ``give_back()``.

    Raises:
        EngineError: the engine does not answer, or refuses the holder.
        TimeoutError: the holder did not come up.
    """
    free = _free.setdefault(engine.host, [])
    while free:
        loopback = free.pop()
        if loopback.alive:
            return loopback
        loopback.close()
    making = asyncio.ensure_future(_make(engine, runtime_dir))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        making.add_done_callback(_keep_for_the_next)
        raise


def etc_files(channel_dir: Path) -> dict[str, Path]:
    """Write a sandbox's own ``/etc/hosts`` and the like; returns ``{target: source}``.

    Without them, all sandboxes of one namespace would share and could change its holder's.
    """
    folder = channel_dir / "etc"
    folder.mkdir()
    for name, text in _FILES.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o644)
    return {f"/etc/{name}": folder / name for name in _FILES}


def _keep_for_the_next(making: asyncio.Future[Loopback]) -> None:
    if not making.cancelled() and making.exception() is None:
        making.result().give_back()


async def _make(engine: Engine, runtime_dir: Path) -> Loopback:
    with _listening() as (server, folder):
        name = f"{labels.PREFIX}-loopback-{uuid.uuid4().hex[:12]}"
        container = await _create(engine, name, _config(runtime_dir, folder))
        try:
            await engine.start(container)
            async with asyncio.timeout(_START_TIMEOUT_SEC):
                connection, _ = await asyncio.get_running_loop().sock_accept(server)
        except BaseException:
            await engine.remove(container)
            raise
    return Loopback(engine.host, container, connection)


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


def _config(runtime_dir: Path, folder: Path) -> dict[str, Any]:
    def mount(source: Path, target: str) -> dict[str, Any]:
        return {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": True}

    return {
        "Image": _IMAGE,
        "Hostname": HOSTNAME,
        "Entrypoint": [RUNTIME_PYTHON, "-I", "-S", "-c", _HOLD, f"{CHANNEL_DIR}/{_SOCKET}"],
        "Labels": {labels.LOOPBACK: instance_id()},
        "HostConfig": {
            "NetworkMode": "none",
            "AutoRemove": True,
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "Mounts": [mount(runtime_dir, RUNTIME_DIR), mount(folder, CHANNEL_DIR)],
        },
    }
