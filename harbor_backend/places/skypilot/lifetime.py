"""How long a sandbox may live, and what a single command in it may take."""

import math
from collections.abc import Iterable

MAX_EXEC_SEC = 3600
"""The platform's cap for one command and for one file call."""

MAX_LIFETIME_SEC = 24 * 3600
_MARGIN_SEC = 600.0
"""For start, transfers and collecting; what is left over is the bound of a leak."""


def lifetime_sec(budgets: Iterable[float | None]) -> int:
    """Seconds after which the platform ends a sandbox by itself.

    The sum of what may run in it, of which each part is capped at
    ``MAX_EXEC_SEC`` anyway (``None``: no deadline), and a margin.
    """
    total = sum(MAX_EXEC_SEC if budget is None else max(budget, 0.0) for budget in budgets)
    return min(MAX_LIFETIME_SEC, math.ceil(total + _MARGIN_SEC))


def check_budget(seconds: float | None, what: str) -> None:
    """Refuse a deadline that the platform would cut short.

    Raises:
        ValueError: it is longer than one command may take.
    """
    if seconds is not None and seconds > MAX_EXEC_SEC:
        raise ValueError(
            f"{what} is {seconds:g}s, and a SkyPilot sandbox ends every command after "
            f"{MAX_EXEC_SEC}s: lower it to at most {MAX_EXEC_SEC}, or run the task on Docker"
        )
