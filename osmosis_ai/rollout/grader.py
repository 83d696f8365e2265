"""The contract of reward logic."""

from abc import ABC, abstractmethod
from typing import Any

from osmosis_ai.rollout.context import GraderContext
from osmosis_ai.rollout.types.config import GraderConfig


class Grader(ABC):
    """Subclass it, implement ``grade()``, and pass the class to a backend.

    ``config`` is this run's own copy of the instance that was wired in.
    """

    def __init__(self, config: GraderConfig | None = None) -> None:
        self.config = config

    @abstractmethod
    async def grade(self, ctx: GraderContext) -> Any:
        """Call ``ctx.set_reward()`` once, or set ``ctx.sample.remove_sample``.

        The return value is ignored.
        """
        raise NotImplementedError
