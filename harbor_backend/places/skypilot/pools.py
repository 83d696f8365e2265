"""Warm pools: made, resized and deleted on request."""

from typing import Any

from harbor_backend.places.skypilot.errors import SkypilotError
from harbor_backend.places.skypilot.names import checked_label
from harbor_backend.places.skypilot.sdk import call
from harbor_backend.places.skypilot.settings import PoolSpec


async def ensure_pool(sdk: Any, name: str, spec: PoolSpec) -> str:
    """Make a pool, or give the one of this name its size; returns ``created`` or ``resized``.

    Image and shape of a pool are fixed when it is made: to change them, delete it.

    Raises:
        ValueError: the name cannot be a pool's.
        SkypilotError: neither worked.
    """
    checked_label(name, "pool")
    shape = {"cpus": spec.cpus, "memory_gb": spec.memory_gb}
    given = {field: value for field, value in shape.items() if value is not None}
    try:
        await call(sdk.create_pool, name=name, image=spec.image, replicas=spec.replicas, **given)
    except Exception as refused:  # it is there already, or cannot be: resizing tells
        await _resize(sdk, name, spec.replicas, refused)
        return "resized"
    return "created"


async def delete_pool(sdk: Any, name: str) -> None:
    """Delete a pool and its idle sandboxes.

    Raises:
        SkypilotError: it cannot be deleted.
    """
    try:
        await call(sdk.delete_pool, name)
    except Exception as exc:
        raise SkypilotError(f"Pool {name!r} was not deleted: {type(exc).__name__}: {exc}") from exc


async def _resize(sdk: Any, name: str, replicas: int, refused: Exception) -> None:
    try:
        await call(sdk.set_pool_size, name, replicas=replicas)
    except Exception as exc:
        raise SkypilotError(
            f"Pool {name!r} was neither made ({type(refused).__name__}: {refused}) nor resized "
            f"({type(exc).__name__}: {exc})"
        ) from exc
