"""Removing the remote sandboxes of processes that died, and nothing else."""

import logging
from typing import Any

from harbor_backend.places.instance import is_alive, is_ours_to_judge
from harbor_backend.places.skypilot.errors import SkypilotError
from harbor_backend.places.skypilot.listing import list_sandboxes, terminate_listed
from harbor_backend.places.skypilot.names import instance_of

logger = logging.getLogger(__name__)


async def reap_sandboxes(sdk: Any) -> list[str]:
    """Terminate the sandboxes whose name carries a dead instance of this place; returns names.

    What has no name of ours, belongs to a living process, or to one that nobody
    here can judge (another machine, another pod), stays.

    Raises:
        SkypilotError: the sandboxes cannot be listed.
    """
    removed: list[str] = []
    for sandbox in await list_sandboxes(sdk):
        if not is_dead(sandbox.name):
            continue
        try:
            await terminate_listed(sdk, sandbox)
        except SkypilotError as exc:
            logger.warning("%s", exc)
            continue
        logger.info("Removed sandbox %s, whose process is dead", sandbox.name)
        removed.append(sandbox.name)
    return removed


def is_dead(name: str) -> bool:
    """Whether a sandbox's name says that it is ours, and its process is known to be dead."""
    instance = instance_of(name)
    return instance is not None and is_ours_to_judge(instance) and not is_alive(instance)
