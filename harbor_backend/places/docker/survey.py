"""What a container looks like before a task's tests run where the agent worked."""

import asyncio
import time
from pathlib import Path

from harbor_backend.errors import HarborBackendError
from harbor_backend.places.docker.container import Container
from harbor_backend.places.docker.executor import Command, Executor
from harbor_backend.places.sandbox import Sights
from osmosis_ai.common.json_bounds import loads_bounded
from osmosis_ai.rollout.container import survey as program
from osmosis_ai.rollout.container.files import RUNTIME_PYTHON, VERIFIER_LOGS_DIR

ROOT = {None, "", "root", "0", 0}
_LOOK_SEC = program.MAX_DELAY_SEC
_MAX_PRINTED_BYTES = 64 * 1024
_MAX_CHANGES_BYTES = 32 * 1024**2
_MAX_CHANGES = 200_000
_FIELDS = 4
"""Of a change in JSON: itself, two values, and a comma."""


async def survey(
    executor: Executor,
    container: Container,
    agent_sec: float,
    agent: str | int | None,
    tests: str | int | None,
) -> Sights:
    """Look for an agent's processes and for what differs from the image; see ``Sandbox``.

    ``agent`` and ``tests`` are the users of these, ``None`` for root.

    Raises:
        SandboxLostError: the sandbox ended.
    """
    is_forgeable = agent not in ROOT and tests in ROOT
    arguments = [str(agent_sec), str(time.time()), VERIFIER_LOGS_DIR if is_forgeable else ""]
    source = await asyncio.to_thread(Path(program.__file__).read_text)
    looking = Command(
        [RUNTIME_PYTHON, "-I", "-S", "-c", source, *arguments],
        user="root",
        cwd="/",
        timeout_sec=_LOOK_SEC,
        output_limit=_MAX_PRINTED_BYTES,
    )
    ended, changes = await asyncio.gather(
        executor.run(looking), _changes(container), return_exceptions=True
    )
    if isinstance(ended, BaseException):
        raise ended
    if isinstance(changes, asyncio.CancelledError):
        raise changes
    try:
        found = loads_bounded(ended.stdout, max_bytes=_MAX_PRINTED_BYTES)
        running = [str(name) for name in found["processes"]]
        if found["more"]:
            running.append(f"and {found['more']} more")
    except (ValueError, KeyError, TypeError):
        end = ended.stderr[-200:].decode(errors="replace").strip()
        return Sights(None, None, f"its processes could not be looked for ({ended.code}): {end}")
    if isinstance(changes, BaseException):
        return Sights(running, None, f"its files could not be compared with the image: {changes}")
    return Sights(running, changes)


async def _changes(container: Container) -> list[str]:
    """The paths that the engine says are not as in the image.

    Raises:
        HarborBackendError, TimeoutError, ValueError: it does not say, or they are too many.
    """
    held = bytearray()
    async with asyncio.timeout(_LOOK_SEC):
        async for chunk in container.changes():
            held += chunk
            if len(held) > _MAX_CHANGES_BYTES:
                raise HarborBackendError("there are too many changes")
    changed = await asyncio.to_thread(
        loads_bounded,
        bytes(held),
        max_bytes=_MAX_CHANGES_BYTES,
        max_items=_MAX_CHANGES * _FIELDS,
    )
    return [str(change["Path"]) for change in changed or []]
