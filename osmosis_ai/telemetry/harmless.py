"""Telemetry that fails must not fail what it looks at."""

import functools
import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

_reported: set[str] = set()


def harmless[**P](function: Callable[P, None]) -> Callable[P, None]:
    """Log what the function raises, the first time as a warning, and go on."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except Exception as exc:
            name = function.__qualname__
            level = logging.DEBUG if name in _reported else logging.WARNING
            _reported.add(name)
            logger.log(level, "Telemetry is incomplete: %s failed", name, exc_info=exc)

    return guarded
