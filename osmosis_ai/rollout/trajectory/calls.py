"""Tool calls: chat-completions entries to ATIF and back."""

from collections.abc import Mapping
from typing import Any

from osmosis_ai.rollout.trajectory.atif import ToolCall
from osmosis_ai.rollout.trajectory.plain import json_text, parse_json_object

_RAW = "_raw"
_ARGUMENTS_TEXT = "arguments_text"
_FIELDS = "fields"
_FUNCTION_FIELDS = "function_fields"


def calls_to_atif(calls: Any) -> list[ToolCall] | None:
    """Convert the ``tool_calls`` (JSON values) of one message; malformed entries are left out."""
    if not isinstance(calls, list):
        return None
    entries = [entry for entry in calls if isinstance(entry, dict)]
    return [_call(entry, index) for index, entry in enumerate(entries)] or None


def call_from_atif(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chat-completions entry for one ATIF tool call."""
    extra = call.get("extra") or {}
    arguments = call.get("arguments") or {}
    return {
        "id": call.get("tool_call_id"),
        "type": "function",
        **extra.get(_FIELDS, {}),
        "function": {
            "name": call.get("function_name"),
            "arguments": extra.get(_ARGUMENTS_TEXT, _arguments_text(arguments)),
            **extra.get(_FUNCTION_FIELDS, {}),
        },
    }


def _call(entry: dict[str, Any], index: int) -> ToolCall:
    nested = isinstance(entry.get("function"), dict)
    function = entry["function"] if nested else entry
    arguments, exact = _arguments(function.get("arguments"))
    known = {"id", "function"} if nested else {"id", "name", "arguments"}
    extra = {
        _ARGUMENTS_TEXT: exact,
        _FIELDS: {
            key: value
            for key, value in entry.items()
            if key not in known and (key, value) != ("type", "function")
        },
        _FUNCTION_FIELDS: {
            key: value
            for key, value in function.items()
            if nested and key not in ("name", "arguments")
        },
    }
    return ToolCall(
        tool_call_id=_text(entry.get("id"), f"call_{index}"),
        function_name=_text(function.get("name"), "unknown"),
        arguments=arguments,
        extra={key: value for key, value in extra.items() if value not in (None, {})} or None,
    )


def _arguments(value: Any) -> tuple[dict[str, Any], str | None]:
    """Return the arguments, and their exact text where it cannot be made again from them."""
    if value is None:
        return {}, None
    if isinstance(value, dict):
        parsed, text = value, json_text(value)
    else:
        text = value if isinstance(value, str) else json_text(value)
        parsed = parse_json_object(text) or ({} if text == "{}" else {_RAW: text})
    return parsed, None if _arguments_text(parsed) == text else text


def _arguments_text(arguments: Mapping[str, Any]) -> str:
    raw = arguments.get(_RAW)
    if len(arguments) == 1 and isinstance(raw, str):
        return raw
    return json_text(arguments)


def _text(value: Any, missing: str) -> str:
    if value is None or value == "":
        return missing
    return value if isinstance(value, str) else json_text(value)
