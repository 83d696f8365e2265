"""Keeping Harbor's log lines to what the user asked for.

Harbor sets its logger to DEBUG whatever the user says, so that with any handler at
the root every line of every trial is printed. Trials' own log files want them.
"""

import logging

_HARBORS = "harbor.utils.logger"
_ABOVE = "harbor.utils"


class _AsConfigured(logging.Handler):
    """Passes on what the levels of ``harbor`` or of the root logger let through.

    Where nobody configured anything, nothing is printed: what matters is in the outcome.
    """

    def emit(self, record: logging.LogRecord) -> None:
        above = logging.getLogger(_ABOVE)
        if record.levelno >= above.getEffectiveLevel() and above.hasHandlers():
            above.callHandlers(record)


def quiet_harbor() -> None:
    """Have Harbor's lines obey the configured levels, unless its logger was configured itself."""
    logger = logging.getLogger(_HARBORS)
    if logger.handlers or not logger.propagate or logger.level != logging.DEBUG:
        return
    logger.addHandler(_AsConfigured())
    logger.propagate = False
