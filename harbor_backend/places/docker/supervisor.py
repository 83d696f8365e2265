"""Starting the supervisor in a container, and saying why it did not come up."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from harbor_backend.errors import SandboxLostError
from harbor_backend.places.docker.channel import Channel, Listener
from harbor_backend.places.docker.ending import has_ended
from harbor_backend.places.docker.engine import Engine, EngineError
from harbor_backend.places.docker.hosts import ChannelDir
from osmosis_ai.rollout.container.files import CHANNEL_DIR, RUNTIME_DIR, RUNTIME_PYTHON
from osmosis_ai.rollout.container.supervisor.main import BESIDE, NAMES_HOME

_START_SEC = 60
_LOOK_SEC = 1.0
_SOCKET = "control.sock"

_BOOT = "import sys; sys.path.insert(0, sys.argv.pop()); from supervisor.main import main; main()"
_ENTRY_POINT_ENDED = (
    "The image's ENTRYPOINT ended, and the sandbox with it: it has to go on, or to run what it is "
    "given (sh -c 'sleep infinity')"
)


@asynccontextmanager
async def listening(folder: ChannelDir) -> AsyncIterator[Listener]:
    """A socket of a sandbox's directory that waits for its supervisor, while the block runs."""
    path = folder.here / _SOCKET
    listener = Listener(path)
    await listener.open()
    try:
        await folder.offer(path)
        yield listener
    finally:
        await listener.close()


class SupervisorStart:
    """A supervisor that is to come up in one container, and to connect to ``listener``.

    ``is_beside``: the image has a program of its own. That is the first process then, and
    the supervisor, started beside it as root, has nothing of what it sets and changes. Else
    the supervisor is the first process, which is faster. ``names_home``: image or container
    set ``HOME``, so it is the same for every user.
    """

    def __init__(
        self, listener: Listener, runtime: Path, *, is_beside: bool, names_home: bool
    ) -> None:
        package = next(runtime.glob("python/lib/python3*/site-packages"))
        folder = f"{RUNTIME_DIR}/{package.relative_to(runtime)}/osmosis_ai/rollout/container"
        facts = [*([BESIDE] if is_beside else []), *([NAMES_HOME] if names_home else [])]
        boot = [RUNTIME_PYTHON, "-I", "-S", "-c", _BOOT]
        self._command = [*boot, f"{CHANNEL_DIR}/{_SOCKET}", *facts, folder]
        self._listener = listener
        self._is_beside = is_beside

    @property
    def first_command(self) -> list[str] | None:
        """The command of the container; ``None`` for that of Harbor, which only waits."""
        return None if self._is_beside else self._command

    async def connected(self, engine: Engine, container: str) -> Channel:
        """Wait for the supervisor of a container that was started.

        Raises:
            SandboxLostError: it did not come up, or the image's own program ended.
            EngineError: the engine refuses to start it, or is gone.
        """
        try:
            execution = await self._beside(engine, container) if self._is_beside else None
            return await _connected(self._listener, engine, container, execution)
        finally:
            await self._listener.close()

    async def _beside(self, engine: Engine, container: str) -> str:
        """Start it in a running container; returns the engine's id of it."""
        try:
            return await engine.exec_detached(container, self._command, user="0:0")
        except EngineError as exc:
            if exc.status and await has_ended(engine, container):
                raise SandboxLostError(_ENTRY_POINT_ENDED) from exc
            raise


async def _connected(
    listener: Listener, engine: Engine, container: str, execution: str | None
) -> Channel:
    channel: Channel | None = None
    try:
        with anyio.fail_after(_START_SEC):
            while channel is None:
                # A container that ends at once connects never: look, but not on the fast path.
                with anyio.move_on_after(_LOOK_SEC):
                    channel = await listener.accepted()
                if channel is None and (end := await _end(engine, container, execution)):
                    raise SandboxLostError(end)
            await channel.ready()
            return channel
    except (TimeoutError, SandboxLostError) as exc:
        if channel is not None:
            await channel.close()
            if end := await _end(engine, container, execution):
                raise SandboxLostError(end) from exc
        if isinstance(exc, TimeoutError):
            raise SandboxLostError(
                f"The sandbox's supervisor did not come up within {_START_SEC}s"
            ) from exc
        raise


async def _end(engine: Engine, container: str, execution: str | None) -> str | None:
    """What ended of what the supervisor needs; ``None`` while all of it runs."""
    if not (await engine.inspect(container))["State"]["Running"]:
        return "The sandbox's supervisor ended" if execution is None else _ENTRY_POINT_ENDED
    if execution is None:
        return None
    own = await engine.call("GET", f"/exec/{execution}/json")
    return None if own["Running"] else f"The supervisor ended with exit code {own['ExitCode']}"
