"""A Responses request as the chat-completions request that means the same."""

from typing import Any

from osmosis_ai.gateway.errors import bad_request
from osmosis_ai.gateway.responses.items import messages_of

_REFUSED = {
    "previous_response_id": "the gateway keeps no responses; send the whole conversation as input",
    "conversation": "the gateway keeps no conversations; send the whole conversation as input",
    "prompt": "stored prompts are not available; send instructions and input",
    "background": "responses are answered at once; leave it out",
    "context_management": "manage the context in the agent",
    "moderation": "moderate in the agent",
}

_ABOUT_THE_RESPONSE = frozenset(
    {"input", "instructions", "include", "store", "metadata", "truncation", "max_tool_calls"}
)
"""Fields that say nothing to a model with function tools only, or are handled on their own."""

_TRANSLATED = frozenset(
    {"text", "reasoning", "max_output_tokens", "tools", "tool_choice", "stream_options"}
)

_NOTHING_TO_INCLUDE = ("reasoning.encrypted_content",)
_LOGPROBS = "message.output_text.logprobs"


def to_chat(payload: dict[str, Any]) -> dict[str, Any]:
    """Translate a request; fields that both APIs share, and unknown ones, stay as they are.

    Raises:
        ApiError: 400, it needs what chat completions do not have; the message names it.
    """
    for field, remedy in _REFUSED.items():
        if payload.get(field):
            raise _unsupported(field, payload[field], remedy)
    if payload.get("truncation") not in (None, "disabled"):
        raise _unsupported("truncation", payload["truncation"], "use 'disabled'")
    dropped = _REFUSED.keys() | _ABOUT_THE_RESPONSE | _TRANSLATED
    chat = {key: value for key, value in payload.items() if key not in dropped}
    chat["messages"] = messages_of(payload.get("instructions"), payload.get("input"))
    chat |= _text(payload.get("text")) | _tools(payload) | _included(payload.get("include"))
    if payload.get("max_output_tokens") is not None:
        chat["max_completion_tokens"] = payload["max_output_tokens"]
    reasoning = payload.get("reasoning")
    if isinstance(reasoning, dict) and reasoning.get("effort") is not None:
        chat["reasoning_effort"] = reasoning["effort"]
    return chat


def _text(text: Any) -> dict[str, Any]:
    if text is None:
        return {}
    if not isinstance(text, dict):
        raise bad_request(f"text: must be an object, got {type(text).__name__}")
    fields = {} if text.get("verbosity") is None else {"verbosity": text["verbosity"]}
    wanted = text.get("format")
    if wanted is None:
        return fields
    match wanted.get("type") if isinstance(wanted, dict) else None:
        case "text":
            return fields
        case "json_object":
            return fields | {"response_format": {"type": "json_object"}}
        case "json_schema":
            schema = {key: value for key, value in wanted.items() if key != "type"}
            return fields | {"response_format": {"type": "json_schema", "json_schema": schema}}
    raise _unsupported("text.format", wanted, "use text, json_object or json_schema")


def _tools(payload: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if tools := payload.get("tools"):
        if not isinstance(tools, list):
            raise bad_request(f"tools: must be a list, got {type(tools).__name__}")
        fields["tools"] = [_tool(index, tool) for index, tool in enumerate(tools)]
    else:
        # Chat completions refuse these without tools, and they mean nothing then.
        return fields
    if (choice := payload.get("tool_choice")) is not None:
        fields["tool_choice"] = _tool_choice(choice)
    return fields


def _tool(index: int, tool: Any) -> dict[str, Any]:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if kind != "function":
        raise _unsupported(f"tools.{index}", kind, "only function tools can be translated")
    function = {key: value for key, value in tool.items() if key != "type" and value is not None}
    return {"type": "function", "function": function}


def _tool_choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return choice
    if isinstance(choice, dict) and choice.get("type") == "function":
        return {"type": "function", "function": {"name": choice.get("name")}}
    raise _unsupported("tool_choice", choice, "use auto, none, required or a function")


def _included(include: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for entry in include if isinstance(include, list) else []:
        if entry == _LOGPROBS:
            fields["logprobs"] = True
        elif entry not in _NOTHING_TO_INCLUDE:
            raise _unsupported("include", entry, "leave it out")
    return fields


def _unsupported(field: str, value: Any, remedy: str) -> Exception:
    return bad_request(
        f"{field}: {value!r} is not supported, because the upstream has chat completions only; "
        f"{remedy}",
        code="unsupported_item",
    )
