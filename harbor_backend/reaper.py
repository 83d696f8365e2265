"""Removing the sandboxes that a killed engine process left behind, and nothing else."""

import asyncio
import logging
from contextlib import AsyncExitStack

from harbor_backend.environments.engine import Engine, EngineError, shared_engine
from harbor_backend.sandboxes import (
    Sandbox,
    list_sandboxes,
    remove_dead_namespaces,
    remove_sandboxes,
)

logger = logging.getLogger(__name__)

_SETTLE_SEC = 10.0
_begun = False


async def reap(engine: Engine) -> list[Sandbox]:
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


def reap_once(owner: AsyncExitStack) -> None:
    """Reap in the background, once per process; ``owner`` waits for it when it closes.

    An engine that does not answer is logged: the first trial reports it better.
    """
    global _begun
    if _begun:
        return
    _begun = True
    reaping = asyncio.create_task(_reap_quietly(), name="osmosis-reaper")
    owner.push_async_callback(_settle, reaping)


async def _reap_quietly() -> None:
    try:
        await reap(shared_engine())
    except EngineError as exc:
        logger.warning("Sandboxes of ended engines were not looked for: %s", exc)


async def _settle(reaping: asyncio.Task[None]) -> None:
    await asyncio.wait([reaping], timeout=_SETTLE_SEC)
    reaping.cancel()
    await asyncio.gather(reaping, return_exceptions=True)
