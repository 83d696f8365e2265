"""What an engine lets a sandbox have: system calls, capabilities, memory and processes."""

import logging
from dataclasses import dataclass
from typing import Any

from harbor_backend.places.docker.engine import Engine
from harbor_backend.places.docker.seccomp import seccomp_profile

logger = logging.getLogger(__name__)

MAX_PIDS = 4096
_DROPPED = ("AUDIT_WRITE", "NET_RAW")
"""Of the engine's default: forged audit records, and frames in the name of a neighbour."""
_ARCHITECTURES = {"x86_64", "amd64", "aarch64", "arm64"}
_OUT_OF_MEMORY_SCORE = 500
"""A machine without memory ends a sandbox's processes before the engine's."""
_INFO_SEC = 10.0


@dataclass(frozen=True)
class Walls:
    """Of the containers of one engine.

    ``has_profile``: it takes our seccomp profile. ``default_memory_mb`` is for tasks
    that declare no memory: half of the machine's.
    """

    has_profile: bool = True
    default_memory_mb: int | None = None

    def host_config(self, memory_mb: int | None) -> dict[str, Any]:
        """The engine's settings; ``memory_mb`` of 0 is without a limit, ``None`` by default."""
        limit = self.default_memory_mb if memory_mb is None else memory_mb
        memory = (limit or 0) * 1024 * 1024
        return {
            "CapDrop": list(_DROPPED),
            "SecurityOpt": [f"seccomp={seccomp_profile()}"] if self.has_profile else [],
            "Memory": memory,
            "MemorySwap": memory,
            "PidsLimit": MAX_PIDS,
            "OomScoreAdj": _OUT_OF_MEMORY_SCORE,
        }


_known: dict[str, Walls] = {}


async def walls_of(engine: Engine) -> Walls:
    """What this engine can do, which is asked once.

    Raises:
        EngineError: it does not answer.
    """
    if engine.host not in _known:
        info = await engine.call("GET", "/info", timeout=_INFO_SEC)
        _known[engine.host] = _walls(engine.host, info)
    return _known[engine.host]


def _walls(host: str, info: dict[str, Any]) -> Walls:
    has_seccomp = any("seccomp" in str(option) for option in info.get("SecurityOptions") or [])
    if not has_seccomp:
        logger.warning(
            "The engine at %s has no seccomp: its sandboxes may make every system call", host
        )
    has_profile = has_seccomp and info.get("Architecture") in _ARCHITECTURES
    half = int(info.get("MemTotal") or 0) // 2 // 1024**2
    return Walls(has_profile, half or None)
