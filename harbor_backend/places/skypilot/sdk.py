"""The part of SkyPilot's sandbox SDK that is used, and how it is found.

The SDK is not in any public package: the Platform's installer brings it, and
SkyPilot loads it as ``sky.sandbox`` from the entry-point group ``sky.client_sdks``.
"""

import asyncio
import importlib
import inspect
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Any

from harbor_backend.places.skypilot.errors import SkypilotUnavailableError

ENTRY_POINTS = "sky.client_sdks"
_DOCS = "https://docs.skypilot.co/en/latest/sandboxes.html"
INSTALL = (
    'pip install "osmosis-ai[harbor,skypilot]" with the uvicorn override that docs/skypilot.md '
    "gives"
)


def installed_version() -> str | None:
    """The version of SkyPilot that is installed here, without importing it."""
    try:
        return version("skypilot")
    except PackageNotFoundError:
        return None


@cache
def load_sdk() -> Any:
    """Return the module ``sky.sandbox``; looked for until it was found once.

    Raises:
        SkypilotUnavailableError: SkyPilot is not installed, cannot be imported,
            or has no sandbox SDK registered.
    """
    if installed_version() is None:
        raise SkypilotUnavailableError(f"SkyPilot is not installed here: {INSTALL}")
    try:
        importlib.import_module("sky")
    except Exception as exc:  # it reads ~/.sky/config.yaml, which may hold anything
        raise SkypilotUnavailableError(
            f"SkyPilot {installed_version()} does not import: {type(exc).__name__}: {exc}. Check "
            "its installation and ~/.sky/config.yaml"
        ) from exc
    registered = [point.value for point in entry_points(group=ENTRY_POINTS, name="sandbox")]
    try:
        return importlib.import_module("sky.sandbox")
    except Exception as exc:
        if registered:
            raise SkypilotUnavailableError(
                f"The sandbox SDK that is registered ({', '.join(registered)}) does not load: "
                f"{type(exc).__name__}: {exc}"
            ) from exc
        raise SkypilotUnavailableError(
            f"SkyPilot {installed_version()} has no sandbox SDK: nothing registers 'sandbox' in "
            f"the entry points {ENTRY_POINTS!r}. It comes with the SkyPilot Platform: {_DOCS}"
        ) from exc


async def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call an entry point of the SDK: its async sibling, or itself in a thread."""
    sibling = getattr(function, "aio", None)
    if sibling is not None:
        return await sibling(*args, **kwargs)
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    result = await asyncio.to_thread(function, *args, **kwargs)
    return await result if inspect.isawaitable(result) else result
