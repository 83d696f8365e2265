"""The contract of agent behaviour: one prompt in, one sample out."""

from abc import ABC, abstractmethod
from typing import Any

from osmosis_ai.rollout.context import AgentWorkflowContext
from osmosis_ai.rollout.types.config import AgentWorkflowConfig
from osmosis_ai.rollout.types.output import AgentWorkflowOutput


class AgentWorkflow[TConfig: AgentWorkflowConfig](ABC):
    """Subclass it, implement ``run()``, and pass the class to a backend.

    ``config`` is this run's own copy of the instance that was wired in.
    """

    def __init__(self, config: TConfig | None = None) -> None:
        self.config = config

    @abstractmethod
    async def run(
        self, ctx: AgentWorkflowContext[TConfig]
    ) -> AgentWorkflowOutput | list[dict[str, Any]] | None:
        """Run the agent on ``ctx.prompt``.

        Return the sample's messages (bare, or as ``AgentWorkflowOutput``), or
        ``None`` to take the sample from the source registered on the active
        ``RolloutContext``.
        """
        raise NotImplementedError
