"""Bringing files out of a container, within the budget of one download."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from harbor_backend.errors import SandboxLostError
from harbor_backend.places.agent_logs import set_aside_unreadable
from harbor_backend.places.docker.executor import Executor
from harbor_backend.places.limits import (
    MAX_DOWNLOAD_BYTES,
    MAX_DOWNLOAD_ENTRIES,
    MAX_DOWNLOAD_SEC,
)
from osmosis_ai.rollout.container.files import AGENT_LOGS_DIR


async def download(
    executor: Executor, source: str, target: Path, note: Callable[[str], None]
) -> None:
    """Copy a file or tree to ``target``; ``note`` is told what of it did not come.

    Raises:
        FileNotFoundError: the path does not exist.
        ValueError: it is larger than the budget; what came is whole.
        SandboxLostError: it did not come in time, or the sandbox ended.
    """
    try:
        async with asyncio.timeout(MAX_DOWNLOAD_SEC):
            left_out = await executor.get(
                source, target, max_bytes=MAX_DOWNLOAD_BYTES, max_entries=MAX_DOWNLOAD_ENTRIES
            )
    except ValueError as exc:
        note(f"{source} was not fetched whole: {exc}")
        raise
    except TimeoutError as exc:  # Harbor would take it for its own deadline
        text = f"{source} was not fetched whole within {MAX_DOWNLOAD_SEC} s"
        note(text)
        raise SandboxLostError(text) from exc
    if left_out:
        note(f"{left_out} special files or unsafe links in {source} were left out")
    if source == AGENT_LOGS_DIR:
        for problem in await asyncio.to_thread(set_aside_unreadable, target):
            note(problem)
