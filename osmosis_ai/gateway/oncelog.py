"""A log in which what repeats stands once: whoever causes it could fill a disk with it."""

import logging
import sys
from typing import Any


class OnceLog(logging.LoggerAdapter[logging.Logger]):
    """Passes on the first record of each kind: a text without its values, and an error's type.

    Kinds come from code, so there are few. One log is one rollout's.
    """

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger)
        self._seen: set[tuple[int, object, type[BaseException] | None]] = set()

    def log(self, level: int, msg: object, *args: Any, **kwargs: Any) -> None:
        """Log, unless there was one of this kind."""
        kind = (level, msg, _exception_type(kwargs.get("exc_info")))
        if kind not in self._seen:
            self._seen.add(kind)
            super().log(level, msg, *args, **kwargs)


def _exception_type(info: object) -> type[BaseException] | None:
    if isinstance(info, BaseException):
        return type(info)
    current = sys.exception() if info else None
    return None if current is None else type(current)
