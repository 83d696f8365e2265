"""The surface: what ``sky.sandbox`` documents, and what Harbor calls of it. Nothing else exists."""

import threading

from . import commands, containers, faults, pools
from .dual import Dual
from .errors import SandboxConnectionError, SandboxError
from .rules import check_exclusion, checked_env, checked_name, checked_seconds

__all__ = [
    "Sandbox",
    "SandboxConnectionError",
    "SandboxError",
    "aclose",
    "create",
    "create_pool",
    "delete_pool",
    "ls",
    "set_pool_size",
]

_DEFAULT_EXEC_SEC = 60
closings = 0
"""How often the session was closed."""


class Handle:
    """A command that runs; ``wait`` is a coroutine, as the async surface has it."""

    def __init__(self, process: commands.Process) -> None:
        self._process = process
        self.stdout, self.stderr = process.stdout, process.stderr

    async def wait(self) -> int:
        """Its exit code, once it ended."""
        return int(await Dual(self._process.run).aio())


class _Exec:
    """``sandbox.exec``: starts argv, which is no shell line."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def aio(
        self,
        *argv: str,
        workdir: str | None = None,
        timeout_seconds: float = _DEFAULT_EXEC_SEC,
        env: dict[str, str] | None = None,
    ) -> Handle:
        """Start a command."""
        if not argv or not all(isinstance(part, str) for part in argv):
            raise SandboxError(f"exec takes argv tokens, which are strings: {argv!r}")
        settings = {
            "workdir": workdir,
            "budget": checked_seconds(timeout_seconds),
            "env": checked_env(env),
        }
        return Handle(commands.Process(self._name, argv, settings))


class Sandbox:
    """A running sandbox."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.exec = _Exec(name)

    @Dual
    def write_bytes(self, data: bytes, path: str) -> None:
        """Write a file, with the command API's cap on time."""
        commands.write(self.name, data, path)

    @Dual
    def read_bytes(self, path: str) -> bytes:
        """Read a file."""
        return commands.read(self.name, path)

    @Dual
    def terminate(self, wait: bool = False) -> None:
        """End it."""
        faults.before_terminate(self.name)
        if wait:
            containers.remove(self.name)
        else:
            threading.Thread(target=containers.remove, args=[self.name]).start()


@Dual
def create(
    name: str,
    *,
    image: str | None = None,
    pool: str | None = None,
    cpus: float | None = None,
    memory_gb: float | None = None,
    registry: str | None = None,
    context_name: str | None = None,
    namespace: str | None = None,
    env: dict[str, str] | None = None,
    secrets: list[str] | None = None,
    block_network: bool | None = None,
    timeout: float | None = None,
) -> Sandbox:
    """Create a sandbox from an image, or claim one of a pool."""
    checked_name(name)
    check_exclusion(
        pool,
        {
            "image": image,
            "cpus": cpus,
            "memory_gb": memory_gb,
            "registry": registry,
            "block_network": block_network,
        },
    )
    if image is None and pool is None:
        raise SandboxError("the double has no default pool: give image= or pool=")
    faults.before_create(name)
    if pool is not None:
        claimed = pools.claim(pool)
        containers.rename(containers.find(claimed), name)
    else:
        containers.run(
            name,
            str(image),
            cpus=cpus,
            memory_gb=memory_gb,
            env=checked_env(env),
            network=not block_network,
            lifetime_sec=timeout,
            labels={containers.SANDBOX: name},
        )
    faults.after_create(name)
    return Sandbox(name)


@Dual
def ls() -> list[Sandbox]:
    """The sandboxes that run. The real shape is not documented: this is one of several."""
    found = {*containers.names(containers.SANDBOX), *containers.names(containers.POOL)}
    return [Sandbox(name) for name in sorted(found) if not name.startswith("pool-")]


@Dual
def create_pool(
    name: str,
    *,
    image: str,
    replicas: int,
    cpus: float | None = None,
    memory_gb: float | None = None,
) -> None:
    """Make a warm pool."""
    pools.add(pools.Pool(checked_name(name), image, replicas, cpus, memory_gb))


@Dual
def set_pool_size(name: str, *, replicas: int) -> None:
    """Resize a pool."""
    pools.resize(name, replicas)


@Dual
def delete_pool(name: str) -> None:
    """Delete a pool."""
    pools.delete(name)


async def aclose() -> None:
    """Release the shared session."""
    global closings
    closings += 1
