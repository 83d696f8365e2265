"""Strands content blocks and chat-completions messages, in both directions.

Plain data on both sides; nothing here needs the ``strands`` package.
"""

import base64
import json
import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from osmosis_ai.rollout.trajectory.plain import json_text, parse_json_object
from osmosis_ai.rollout.types.json_safe import to_json_value

_SYSTEM_ROLES = ("system", "developer")
# Blocks that steer caching and carry nothing of the conversation.
_HINTS = frozenset({"cachePoint"})
_MEDIA = {"image": "image_url", "document": "file", "video": "video_url", "audio": "audio_url"}


@dataclass
class StrandsHistory:
    """What ``strands.Agent`` takes: the system texts apart from the messages."""

    system: list[str]
    messages: list[dict[str, Any]]


def to_strands(messages: Sequence[Mapping[str, Any]]) -> StrandsHistory:
    """Convert chat-completions messages; the input is left as it is.

    Text becomes text blocks, ``tool_calls`` and ``tool`` messages become
    ``toolUse`` and ``toolResult`` blocks, images in ``data:`` URLs image
    blocks. Blocks that are Strands' own already pass through.
    """
    history = StrandsHistory([], [])
    for message in messages:
        role = message.get("role")
        if role in _SYSTEM_ROLES:
            text = _text_of(message.get("content"))
            if text:
                history.system.append(text)
        elif role == "tool":
            _add_tool_result(history.messages, message)
        else:
            history.messages.append(_to_strands_message(message))
    return history


def to_chat(
    messages: Sequence[Mapping[str, Any]], system: Sequence[Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """Convert a Strands history, and its system prompt blocks, to JSON-safe chat messages.

    Usage that the model reported goes along; nothing is made up. Blocks of a
    kind that chat completions lack become parts of that type.
    """
    converted: list[dict[str, Any]] = []
    texts = [block["text"] for block in system or () if "text" in block]
    if texts:
        converted.append({"role": "system", "content": "\n".join(texts)})
    for message in messages:
        converted.extend(_to_chat_messages(message))
    plain: list[dict[str, Any]] = to_json_value(converted)
    return plain


def _to_strands_message(message: Mapping[str, Any]) -> dict[str, Any]:
    calls = message.get("tool_calls")
    content = message.get("content")
    if isinstance(content, str):
        blocks = [{"text": content}] if content or not calls else []
    elif content is None:
        blocks = []
    else:
        blocks = [_to_block(part) for part in content]
    blocks += [_to_tool_use(call) for call in calls or ()]
    return {k: v for k, v in message.items() if k != "tool_calls"} | {"content": blocks}


def _to_block(part: Any) -> Any:
    image = part.get("image_url") if isinstance(part, Mapping) else None
    url = image.get("url") if isinstance(image, Mapping) else image
    if not isinstance(url, str) or not url.startswith("data:image/"):
        return part
    header, _, data = url.removeprefix("data:image/").partition(",")
    kind, _, encoding = header.partition(";")
    if encoding != "base64":
        return part
    return {"image": {"format": kind, "source": {"bytes": base64.b64decode(data)}}}


def _to_tool_use(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = function.get("arguments") or {}
    parsed = parse_json_object(arguments) if isinstance(arguments, str) else arguments
    return {
        "toolUse": {
            "toolUseId": call.get("id"),
            "name": function.get("name"),
            "input": arguments if parsed is None else parsed,
        }
    }


def _add_tool_result(messages: list[dict[str, Any]], message: Mapping[str, Any]) -> None:
    result = {
        "toolResult": {
            "toolUseId": message.get("tool_call_id"),
            "status": "success",
            "content": [{"text": _text_of(message.get("content"))}],
        }
    }
    last = messages[-1] if messages else None
    if last is not None and all("toolResult" in block for block in last["content"] or [{}]):
        # Strands keeps the results of one turn in one message.
        last["content"].append(result)
    else:
        messages.append({"role": "user", "content": [result]})


def _text_of(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(
        part["text"] if isinstance(part, Mapping) and "text" in part else json_text(part)
        for part in content
    )


def _to_chat_messages(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    reasoning: list[str] = []
    for block in message["content"]:
        if "toolUse" in block:
            calls.append(_to_call(block["toolUse"]))
        elif "toolResult" in block:
            results.append(_to_tool_message(block["toolResult"]))
        elif "text" in block.get("reasoningContent", {}).get("reasoningText", {}):
            reasoning.append(block["reasoningContent"]["reasoningText"]["text"])
        elif not _HINTS.issuperset(block):
            parts.append(_to_part(block))
    if results and not (parts or calls or reasoning):
        return results
    chat: dict[str, Any] = {"role": message["role"], "content": _to_content(parts)}
    if reasoning:
        chat["reasoning_content"] = "\n".join(reasoning)
    if calls:
        chat["tool_calls"] = calls
    usage = _to_usage(message.get("metadata", {}).get("usage"))
    if usage:
        chat["usage"] = usage
    return [*results, chat]


def _to_content(parts: list[dict[str, Any]]) -> Any:
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def _to_part(block: Mapping[str, Any]) -> dict[str, Any]:
    if "text" in block:
        return {"type": "text", "text": block["text"]}
    kind = next(key for key in block if key not in _HINTS)
    value = block[kind]
    if kind == "json":
        return {"type": "text", "text": json.dumps(to_json_value(value), ensure_ascii=False)}
    url = _media_url(kind, value) if kind in _MEDIA else None
    if url is None:
        return {"type": kind, kind: value}
    if kind == "document":
        return {"type": "file", "file": {"filename": value.get("name"), "file_data": url}}
    return {"type": _MEDIA[kind], _MEDIA[kind]: {"url": url}}


def _media_url(kind: str, value: Mapping[str, Any]) -> str | None:
    source = value.get("source", {})
    if "bytes" in source:
        guessed = mimetypes.types_map.get(f".{value.get('format')}")
        media_type = guessed or f"{kind}/{value.get('format')}"
        return f"data:{media_type};base64,{base64.b64encode(source['bytes']).decode()}"
    uri = source.get("location", {}).get("uri")
    return uri if isinstance(uri, str) else None


def _to_call(use: Mapping[str, Any]) -> dict[str, Any]:
    given = use["input"]
    return {
        "id": use["toolUseId"],
        "type": "function",
        "function": {
            "name": use["name"],
            "arguments": given if isinstance(given, str) else json_text(to_json_value(given)),
        },
    }


def _to_tool_message(result: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "tool", "tool_call_id": result["toolUseId"]}
    if result.get("status") == "error":
        message["status"] = "error"
    parts = [_to_part(block) for block in result["content"] if not _HINTS.issuperset(block)]
    return message | {"content": _to_content(parts)}


def _to_usage(usage: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Strands fills in zeros when the model reported nothing; those are not usage."""
    if not usage or not usage.get("totalTokens"):
        return None
    chat: dict[str, Any] = {
        "prompt_tokens": usage["inputTokens"],
        "completion_tokens": usage["outputTokens"],
        "total_tokens": usage["totalTokens"],
    }
    if "cacheReadInputTokens" in usage:
        chat["prompt_tokens_details"] = {"cached_tokens": usage["cacheReadInputTokens"]}
    return chat
