"""Telling which extra brings a missing package."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs_extra(extra: str, feature: str, *packages: str) -> Iterator[None]:
    """Name the extra when one of its ``packages`` is what an import misses.

    Raises:
        ModuleNotFoundError: with the install command; any other import error
            passes unchanged.
    """
    try:
        yield
    except ModuleNotFoundError as exc:
        missing = (exc.name or "").partition(".")[0]
        if missing not in packages:
            raise
        raise ModuleNotFoundError(
            f"{feature} needs the package {missing!r}, which is not installed. Install it with: "
            f'pip install "osmosis-ai[{extra}]"',
            name=exc.name,
            path=exc.path,
        ) from exc
