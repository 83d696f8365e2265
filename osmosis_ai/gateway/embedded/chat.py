"""The part of OpenAI's chat request that a policy looks at."""

from typing import Any, Literal

from pydantic import BaseModel, Field

type Content = str | list[str | dict[str, Any]] | None


class Message(BaseModel):
    """One turn of the conversation."""

    role: str
    content: Content = None
    tool_calls: list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text parts, joined by newlines."""
        if not isinstance(self.content, list):
            return self.content or ""
        texts = [part if isinstance(part, str) else part.get("text") for part in self.content]
        return "\n".join(text for text in texts if isinstance(text, str))


class Function(BaseModel):
    """A tool's name and JSON schema."""

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)


class Tool(BaseModel):
    """A tool that the agent offers; kinds other than functions have no ``function``."""

    type: str = "function"
    function: Function | None = None


class StreamOptions(BaseModel):
    """Options of a streamed answer."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """A chat-completions request; fields that change nothing here are ignored."""

    messages: list[Message] = Field(min_length=1)
    tools: list[Tool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    n: Literal[1] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def prompt(self) -> str:
        """The text of the last user message, or nothing."""
        return next((turn.text for turn in reversed(self.messages) if turn.role == "user"), "")

    @property
    def has_tool_result(self) -> bool:
        """Whether a tool has answered since the last user message."""
        for turn in reversed(self.messages):
            if turn.role in {"tool", "function"}:
                return True
            if turn.role == "user":
                return False
        return False
