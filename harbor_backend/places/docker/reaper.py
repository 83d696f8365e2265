"""Removing the sandboxes that a killed process of ours left behind, and nothing else."""

from harbor_backend.places.docker.engine import Engine
from harbor_backend.places.docker.sandboxes import (
    SandboxRecord,
    list_sandboxes,
    remove_dead_namespaces,
    remove_sandboxes,
)


async def reap(engine: Engine) -> list[SandboxRecord]:
    """Remove the sandboxes whose owner is known to be dead; returns them.

    Kept ones, those of a living process, and those whose owner cannot be judged
    from here stay, and so does every container without our label.

    Raises:
        EngineError: the engine does not answer.
    """
    await remove_dead_namespaces(engine)
    dead = {s.container for s in await list_sandboxes(engine) if s.stale}
    if not dead:
        return []
    # Looked at again: an owner may have kept one after the list and before it died.
    again = [s for s in await list_sandboxes(engine) if s.container in dead and s.stale]
    return await remove_sandboxes(engine, again)
