"""The policy that runs the command which its task spells out."""

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from osmosis_ai.gateway.embedded.base import Answer, PolicyParameters, ToolCall
from osmosis_ai.gateway.embedded.chat import ChatRequest, Function

_OPENING = r"```(?:sh|bash|shell)[ \t]*"
_BLOCK = re.compile(
    # As it stands, or inside a JSON string, where a line ends in a backslash and an n.
    rf"^[ \t]*{_OPENING}\n(.*?)^[ \t]*```|{_OPENING}\\n([^\n]*?)\\n[ \t]*```",
    re.DOTALL | re.MULTILINE,
)
_SHELLS = ("bash", "shell", "execute", "terminal", "command")
_NOTHING = "I find no fenced shell command in the task."
# Agents end in different ways; each says in its prompt which way is its own.
_SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_KEYSTROKES = '"keystrokes"'


@dataclass(frozen=True)
class Shell:
    """Runs the first fenced ``sh`` block of the task once, then says that it is done.

    It speaks to agents with a shell tool (mini-swe-agent, opencode), to those
    that type keystrokes given as JSON (terminus-2), and to those that read a
    fenced block out of the answer. It never reads what the command printed.
    """

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
        asked = "\n".join(turn.text for turn in request.messages if turn.role != "assistant")
        command = find_command(asked)
        acted = any(turn.role == "assistant" for turn in request.messages)
        said = _NOTHING if command is None else "Done." if acted else "I run the task's command."
        command = None if acted else command
        if _KEYSTROKES in asked:
            return Answer(_keystrokes(said, command))
        if command is None and _SUBMIT in asked:
            command = _SUBMIT
        tool = None if request.tool_choice == "none" else _shell_tool(request)
        if command is None:
            return Answer(said)
        if tool is None:
            return Answer(f"{said}\n\n```bash\n{command}\n```")
        return Answer(tool_call=_call(tool, command, len(request.messages)))


def find_command(text: str) -> str | None:
    """The first fenced ``sh``, ``bash`` or ``shell`` block of ``text``.

    Read too where the text holds it in JSON, as an instruction made of chat
    messages does.
    """
    found = _BLOCK.search(text)
    if found is None:
        return None
    plain, escaped = found.groups()
    try:
        command = plain if escaped is None else str(json.loads(f'"{escaped}"'))
    except ValueError:
        return None
    return command.strip() or None


def _keystrokes(said: str, command: str | None) -> str:
    typed = [] if command is None else [{"keystrokes": f"{command}\n", "duration": 1.0}]
    plan = {"analysis": said, "plan": said, "commands": typed, "task_complete": not typed}
    return json.dumps(plan)


def _shell_tool(request: ChatRequest) -> Function | None:
    functions = [tool.function for tool in request.tools or [] if tool.function is not None]
    return next(
        (
            function
            for word in _SHELLS
            for function in functions
            if word in function.name.lower() and "command" in _properties(function)
        ),
        None,
    )


def _call(tool: Function, command: str, turn: int) -> ToolCall:
    required = tool.parameters.get("required")
    others = required if isinstance(required, list) else []
    arguments = {str(name): "The task's own command" for name in others} | {"command": command}
    digest = sha256(f"{turn}\0{command}".encode(errors="surrogatepass")).hexdigest()
    return ToolCall(f"call_{digest[:24]}", tool.name, json.dumps(arguments))


def _properties(function: Function) -> dict[str, object]:
    properties = function.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}
