"""The policy that repeats what the user said."""

from dataclasses import dataclass
from typing import Self

from osmosis_ai.gateway.embedded.base import Answer, PolicyParameters
from osmosis_ai.gateway.embedded.chat import ChatRequest


@dataclass(frozen=True)
class Echo:
    """Repeats the last user message."""

    parameters: PolicyParameters

    @classmethod
    def from_parameters(cls, values: dict[str, str]) -> Self:
        """Validate and make.

        Raises:
            pydantic.ValidationError: a parameter is unknown or wrong.
        """
        return cls(PolicyParameters.model_validate(values))

    @property
    def latency_sec(self) -> float:
        """See ``Policy``."""
        return self.parameters.latency_ms / 1000

    def answer(self, request: ChatRequest) -> Answer:
        """See ``Policy``."""
        return Answer(request.prompt)
