"""Creating a sandbox so that none can be lost, however its caller ends."""

import asyncio
from collections.abc import Mapping
from typing import Any

from harbor_backend.places.skypilot.errors import SandboxCreationError
from harbor_backend.places.skypilot.sdk import call
from harbor_backend.places.skypilot.terminator import Terminator


async def create_sandbox(
    sdk: Any, terminator: Terminator, name: str, arguments: Mapping[str, Any], limit_sec: float
) -> Any:
    """Create a sandbox within ``limit_sec`` and return its handle.

    A creation goes on in the cluster whatever happens here. So nothing cancels
    it: when the caller is cancelled or has waited long enough, ``terminator`` waits
    for what comes of it and ends that; when it fails, a sandbox of this name is
    looked for and ended.

    Raises:
        SandboxCreationError: the SDK failed, gave nothing, or took too long.
    """
    creation = asyncio.create_task(call(sdk.create, name=name, **arguments), name=f"create {name}")
    try:
        done, _ = await asyncio.wait({creation}, timeout=limit_sec)
    except asyncio.CancelledError:
        terminator.adopt(name, creation)
        raise
    if not done:
        terminator.adopt(name, creation)
        raise SandboxCreationError(
            f"The sandbox {name} was not created within {limit_sec:g}s: see build_timeout_sec in "
            "[environment] of the task's task.toml"
        )
    if (failed := creation.exception()) is not None:
        await asyncio.shield(terminator.end_by_name(name))
        raise SandboxCreationError(
            f"The sandbox {name} was not created: {type(failed).__name__}: {failed}"
        ) from failed
    if creation.result() is None:
        raise SandboxCreationError(f"The SDK gave no sandbox for {name}")
    return creation.result()
