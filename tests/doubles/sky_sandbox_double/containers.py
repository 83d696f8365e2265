"""The containers behind the sandboxes, over an engine client of the double's own."""

import functools
import math
import threading
import time
from pathlib import Path
from typing import Any

import docker
import docker.errors

from . import networks
from .errors import SandboxError
from .inside import MainProcess

SANDBOX = "sky-sandbox-double.name"
POOL = "sky-sandbox-double.pool"
DEFAULT_LIFETIME_SEC = 24 * 3600
_PREFIX = "skydouble-"
_IDLE = "trap 'exit 0' TERM; sleep {seconds} & wait"
_START_SEC = 10.0
_local = threading.local()
_mains: dict[str, MainProcess] = {}


def engine() -> Any:
    """This thread's client: its connections are not safe to be shared."""
    if not hasattr(_local, "client"):
        _local.client = docker.from_env(timeout=120)
    return _local.client


def run(
    name: str,
    image: str,
    *,
    cpus: float | None,
    memory_gb: float | None,
    env: dict[str, str],
    network: bool,
    lifetime_sec: float | None,
    labels: dict[str, str],
) -> Any:
    """Start a container that ends, and is gone, after its lifetime."""
    seconds = DEFAULT_LIFETIME_SEC if lifetime_sec is None else max(1, math.ceil(lifetime_sec))
    _ensure(image)
    try:
        return engine().containers.run(
            image,
            entrypoint=["sh", "-c", _IDLE.format(seconds=seconds)],
            name=f"{_PREFIX}{name}",
            labels=labels,
            environment=env,
            detach=True,
            auto_remove=True,
            nano_cpus=int(cpus * 1e9) if cpus else 0,
            mem_limit=int(memory_gb * 2**30) if memory_gb else 0,
            network_mode="bridge" if network else networks.borrow(engine(), name, image),
        )
    except docker.errors.APIError as exc:
        networks.give_back(name)
        if exc.status_code == 409:
            raise SandboxError(f"a sandbox {name!r} is there already") from exc
        raise SandboxError(str(exc)) from exc


def find(name: str) -> Any:
    """The container of a sandbox."""
    try:
        return engine().containers.get(f"{_PREFIX}{name}")
    except docker.errors.NotFound as exc:
        raise SandboxError(f"no sandbox {name!r}") from exc


def main_process(name: str) -> MainProcess:
    """The first process of a sandbox."""
    main = _mains.get(name)
    if main is None or main.ended():
        main = _mains[name] = _main_process(find(name).attrs["State"]["Pid"])
    return main


def names(label: str = SANDBOX) -> list[str]:
    """Names of the sandboxes, of this process and of others; also of those not yet started."""
    found = engine().api.containers(all=True, filters={"label": label})
    return sorted(str(entry["Names"][0]).removeprefix(f"/{_PREFIX}") for entry in found)


def rename(container: Any, name: str) -> None:
    """Give a pool's container the name of the sandbox that claims it."""
    try:
        container.rename(f"{_PREFIX}{name}")
    except docker.errors.APIError as exc:
        raise SandboxError(f"a sandbox {name!r} is there already: {exc}") from exc


def remove(name: str) -> None:
    """Remove a container; one that is gone, or going, is no error."""
    _mains.pop(name, None)
    try:
        engine().api.remove_container(f"{_PREFIX}{name}", force=True, v=True)
    except docker.errors.NotFound:
        pass
    except docker.errors.APIError as exc:
        if exc.status_code != 409:  # 409: its removal is in progress
            raise SandboxError(str(exc)) from exc
        return
    networks.give_back(name)


def _main_process(pid: int) -> MainProcess:
    """The engine answers before its own process has become the container's."""
    idle = _IDLE.partition("{")[0].encode()
    deadline = time.monotonic() + _START_SEC
    try:
        while idle not in Path("/proc", str(pid), "cmdline").read_bytes():
            if time.monotonic() > deadline:
                raise SandboxError(f"the sandbox's process {pid} does not come up")
            time.sleep(0.001)
    except OSError as exc:
        raise SandboxError(f"the sandbox has ended: {exc}") from exc
    return MainProcess(pid)


@functools.cache
def _ensure(image: str) -> None:
    try:
        engine().images.get(image)
    except docker.errors.ImageNotFound:
        try:
            engine().images.pull(image)
        except docker.errors.APIError as exc:
            raise SandboxError(f"image {image!r} cannot be pulled: {exc}") from exc
