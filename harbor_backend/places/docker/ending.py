"""What became of a container that ended by itself."""

import asyncio

from harbor_backend.places.docker.engine import Engine, EngineError

_POLL_SEC = 0.05
# Its processes end a little earlier than the engine knows of it.
_POLLS = 20


async def has_ended(engine: Engine, container: str) -> bool:
    """Whether a container ends about now.

    Raises:
        EngineError: the engine does not say.
    """
    for _ in range(_POLLS):
        try:
            state = (await engine.inspect(container))["State"]
        except EngineError as exc:
            if exc.status == 404:
                return True
            raise
        if not state["Running"]:
            return True
        await asyncio.sleep(_POLL_SEC)
    return False


async def last_words(engine: Engine, container: str) -> str:
    """The state of a container that ends about now, and what its first process printed.

    Raises:
        EngineError: the engine does not say, or does not have it any more.
    """
    await has_ended(engine, container)
    state = (await engine.inspect(container))["State"]
    ended = f", exit code {state['ExitCode']}" if not state["Running"] else ""
    memory = ", out of memory" if state["OOMKilled"] else ""
    printed = await engine.logs(container) or "nothing"
    return f"Container {state['Status']}{ended}{memory}. Its first process printed: {printed}"
