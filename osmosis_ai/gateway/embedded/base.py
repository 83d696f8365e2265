"""What a policy is."""

from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from osmosis_ai.gateway.embedded.chat import ChatRequest


@dataclass(frozen=True)
class ToolCall:
    """A call of one of the agent's tools; ``arguments`` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Answer:
    """What the policy says: text, or a tool call to make first."""

    text: str = ""
    tool_call: ToolCall | None = None


class Policy(Protocol):
    """Answers a conversation from the conversation alone, so that order never matters."""

    @property
    def latency_sec(self) -> float:
        """How long the policy pretends to think before its first token."""
        ...

    def answer(self, request: ChatRequest) -> Answer:
        """Return the next assistant turn."""
        ...


class PolicyParameters(BaseModel):
    """Parameters that every policy has; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    latency_ms: float = Field(0, ge=0, le=600_000, allow_inf_nan=False)
    """Thinking time before the first token, in milliseconds."""
