"""Warm pools: containers of one image and shape that wait to be claimed. Of this process only."""

import threading
import uuid
from dataclasses import dataclass, field

from . import containers
from .errors import SandboxError


@dataclass
class Pool:
    """A pool, and the idle containers that it has."""

    name: str
    image: str
    replicas: int
    cpus: float | None
    memory_gb: float | None
    idle: list[str] = field(default_factory=list)

    def fill(self) -> None:
        """Have as many idle containers as the pool is to have."""
        while len(self.idle) < self.replicas:
            self.idle.append(self.start())
        while len(self.idle) > self.replicas:
            containers.remove(self.idle.pop())

    def start(self) -> str:
        """Start a container for the pool."""
        name = f"pool-{self.name}-{uuid.uuid4().hex[:8]}"
        containers.run(
            name,
            self.image,
            cpus=self.cpus,
            memory_gb=self.memory_gb,
            env={},
            network=True,
            lifetime_sec=None,
            labels={containers.POOL: self.name},
        )
        return name


_pools: dict[str, Pool] = {}
_lock = threading.Lock()


def add(pool: Pool) -> None:
    """Make a pool."""
    with _lock:
        if pool.name in _pools:
            raise SandboxError(f"pool {pool.name!r} exists already")
        _pools[pool.name] = pool
        pool.fill()


def get(name: str) -> Pool:
    """The pool of this name."""
    try:
        return _pools[name]
    except KeyError:
        raise SandboxError(f"no pool {name!r}") from None


def resize(name: str, replicas: int) -> None:
    """Change how many containers wait."""
    with _lock:
        pool = get(name)
        pool.replicas = replicas
        pool.fill()


def delete(name: str) -> None:
    """Remove a pool and its idle containers."""
    with _lock:
        pool = get(name)
        pool.replicas = 0
        pool.fill()
        del _pools[name]


def claim(name: str) -> str:
    """Take a container of the pool; one is started when none waits."""
    with _lock:
        pool = get(name)
        return pool.idle.pop() if pool.idle else pool.start()
