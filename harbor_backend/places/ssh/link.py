"""One connection to one host, and what a sandbox needs of it."""

import asyncio
import contextlib
import logging
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from harbor_backend.places import labels
from harbor_backend.places.channel_dir import make_channel_dir
from harbor_backend.places.docker.engine import Engine, EngineError
from harbor_backend.places.docker.reaper import reap
from harbor_backend.places.docker.sandboxes import SandboxRecord, list_sandboxes, remove_sandboxes
from harbor_backend.places.ssh.engine import TunnelledEngine
from harbor_backend.places.ssh.errors import HostRefusedError
from harbor_backend.places.ssh.settings import FleetSettings, HostSettings
from harbor_backend.places.ssh.ssh import Connection, connect

logger = logging.getLogger(__name__)

_PING_SEC = 10.0
_PRUNE_DAYS = 30
# Runtimes are never written once they are there, but they share files: another process that
# links one while it is read changes its link count, and nothing else.
_TAR_SAW_A_CHANGE = 1
# Sockets have a directory of their own: a home may be on a network file system, or too deep.
_PREPARE = f"""
umask 077
case $1 in /*) base=$1;; *) base=$HOME/$1;; esac
mkdir -p "$base/runtimes" || exit 1
sockets=/tmp/osmosis-$(id -u)
mkdir -p "$sockets" || exit 1
if [ -L "$sockets" ] || [ ! -O "$sockets" ]; then echo "$sockets is not ours"; exit 1; fi
chmod 700 "$sockets" || exit 1
find "$base/runtimes" -mindepth 1 -maxdepth 1 -mtime +{_PRUNE_DAYS} -exec rm -rf {{}} + 2>&1
cd "$base" && pwd -P && echo "$sockets"
"""
_MAKE_DIR = 'mkdir "$1" && chmod 755 "$1"'
_FIND_RUNTIME = 'if [ -d "$1" ]; then touch "$1" && echo there; fi'
# Published by its rename: a directory with this name is whole.
_TAKE_RUNTIME = """
umask 022
partial=$(mktemp -d "$1.partial-XXXXXX") || exit 1
chmod 755 "$partial"
if tar -xzof - -C "$partial" && { mv -T "$partial" "$1" 2>/dev/null || [ -d "$1" ]; }; then
  touch "$1"
  rm -rf "$partial"
  exit 0
fi
rm -rf "$partial"
exit 1
"""


class Link:
    """A host while it is connected.

    Attributes:
        host_name: what ssh calls it.
        engine: its Docker engine.
        lost: why it ended, once it did.
    """

    def __init__(
        self, connection: Connection, engine: Engine, host_name: str, runtimes: str, sockets: str
    ) -> None:
        self.host_name = host_name
        self.engine = engine
        self.lost: str | None = None
        self._connection = connection
        self._runtimes = runtimes
        self._sockets = sockets
        self._copying: dict[str, asyncio.Lock] = {}
        self._copied: set[str] = set()

    def new_dir(self) -> str:
        """A fresh path there, for a directory of a sandbox's sockets."""
        return f"{self._sockets}/r-{secrets.token_hex(8)}"

    async def make_dir(self, path: str) -> None:
        """Make a directory at a path of ``new_dir`` that only this user reaches."""
        await self._connection.shell.run(_MAKE_DIR, path)

    async def remove_dirs(self, paths: Sequence[str]) -> None:
        """Remove directories that ``make_dir`` made, if they are there; others are left alone."""
        ours = [path for path in paths if path.startswith(f"{self._sockets}/r-")]
        if ours and not any("/../" in f"{path}/" for path in ours):
            await self._connection.shell.run('rm -rf -- "$@"', *ours)

    async def forward(self, there: str, here: Path) -> None:
        """Let a socket path of the host lead to a socket here, for every user of a sandbox.

        Raises:
            HostRefusedError, HostLostError: it cannot be.
        """
        await self._connection.forward(there, here)
        await self._connection.shell.run('chmod 666 "$1"', there)

    async def cancel_forward(self, there: str, here: Path) -> None:
        """Undo ``forward``."""
        await self._connection.cancel_forward(there, here)

    async def runtime(self, local: Path) -> str:
        """Return the path there of a runtime, copied on its first use.

        Its directory's name is the hash of its content.

        Raises:
            HostRefusedError: it cannot be written there.
            HostLostError: the host went away.
        """
        path = f"{self._runtimes}/{local.name}"
        async with self._copying.setdefault(local.name, asyncio.Lock()):
            if local.name not in self._copied:
                if not await self._connection.shell.run(_FIND_RUNTIME, path):
                    await self._copy(local, path)
                self._copied.add(local.name)
        return path

    async def ping(self) -> str | None:
        """Ask the engine for a sign of life; returns what is wrong, ``None`` if nothing."""
        if self.lost is not None:
            return self.lost
        try:
            await self.engine.call("GET", "/_ping", timeout=_PING_SEC)
        except EngineError as exc:
            return self.lost or str(exc)
        return None

    async def remove_sandboxes(self, mark: str) -> None:
        """Remove the sandboxes with this mark, and their sockets; kept ones stay.

        Raises:
            HostRefusedError: the engine refuses.
        """
        try:
            mine = await list_sandboxes(self.engine, {labels.HOST: mark})
            await self.forget(await remove_sandboxes(self.engine, [s for s in mine if not s.kept]))
        except EngineError as exc:
            raise HostRefusedError(str(exc)) from exc

    async def forget(self, removed: Iterable[SandboxRecord]) -> None:
        """Remove the directories of sandboxes that are gone."""
        with contextlib.suppress(HostRefusedError):  # a directory that stays does no harm
            await self.remove_dirs([str(s.channel_dir) for s in removed if s.channel_dir])

    async def ended(self) -> None:
        """Wait for the connection's end."""
        await self._connection.ended()

    async def _copy(self, local: Path, path: str) -> None:
        began = time.monotonic()
        packing = ["tar", "-C", str(local), "--use-compress-program", "gzip -1", "-cf", "-", "."]
        await self._connection.send(packing, _TAKE_RUNTIME, path, benign_code=_TAR_SAW_A_CHANGE)
        took = time.monotonic() - began
        logger.info("Runtime %s was copied to host %s in %.1f s", local.name, self.host_name, took)


@asynccontextmanager
async def open_link(settings: FleetSettings, host: HostSettings) -> AsyncIterator[Link]:
    """Connect to a host, check that it can serve, and remove what dead processes left there.

    Raises:
        HostLostError: it cannot be reached.
        HostRefusedError: it lacks something; the text says what.
    """
    folder = make_channel_dir()
    folder.chmod(0o700)
    try:
        async with connect(folder, settings, host) as connection:
            printed = await connection.shell.run(_PREPARE, settings.directory)
            base, sockets = printed.splitlines()[-2:]
            engine = TunnelledEngine(
                connection.docker_socket, host.destination, settings.docker_socket
            )
            link = Link(connection, engine, host.destination, f"{base}/runtimes", sockets)
            try:
                await _check(link)
                yield link
            finally:
                link.lost = link.lost or "the connection was closed"
                await engine.aclose()
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _check(link: Link) -> None:
    try:
        await link.engine.call("GET", "/version", timeout=_PING_SEC)
        await link.forget(await reap(link.engine))
    except EngineError as exc:
        raise HostRefusedError(str(exc)) from exc
