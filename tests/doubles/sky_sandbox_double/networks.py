"""Network namespaces with nothing but a loopback, lent to one sandbox after the other.

Making one costs an engine as much as all the rest of a container. Each is held by a
container that does nothing.
"""

import atexit
import contextlib
from typing import Any

import docker.errors

HOLDER = "sky-sandbox-double.network"
HOLD_SEC = 12 * 3600

_free: list[str] = []
_lent: dict[str, str] = {}


def borrow(engine: Any, name: str, image: str) -> str:
    """A network mode for a sandbox that is to reach nothing; of any image, for the holder."""
    try:
        holder = _free.pop()
    except IndexError:
        holder = engine.containers.run(
            image,
            entrypoint=["sleep", str(HOLD_SEC)],
            labels={HOLDER: name},
            detach=True,
            auto_remove=True,
            network_mode="none",
        ).id
        atexit.register(_end, engine, holder)
    _lent[name] = holder
    return f"container:{holder}"


def give_back(name: str) -> None:
    """Nothing of the sandbox runs any more."""
    if (holder := _lent.pop(name, None)) is not None:
        _free.append(holder)


def _end(engine: Any, holder: str) -> None:
    with contextlib.suppress(docker.errors.APIError):
        engine.api.remove_container(holder, force=True)
