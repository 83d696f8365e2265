"""Items of the OpenAI Agents SDK and chat-completions messages.

Plain data on both sides; nothing here needs the ``agents`` package.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from osmosis_ai.rollout.trajectory.plain import json_text
from osmosis_ai.rollout.types.json_safe import to_json_value

SYSTEM_ROLES = ("system", "developer")
_TEXT_PARTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")


@dataclass(frozen=True)
class Instructions:
    """A system prompt, and how many items stood in the session when it took effect."""

    position: int
    text: str


def lift_system(instructions: str | None, items: Sequence[Any]) -> tuple[str | None, list[Any]]:
    """Join the system messages that open ``items`` to the instructions, which come first.

    That is the order in which the SDK sends them, in one message instead of
    several: many chat templates take a single system message. System messages
    after the first turn stay where they stand.
    """
    count = leading_system_messages(items)
    texts = [instructions, *(text_of(item["content"]) for item in items[:count])]
    return "\n\n".join(text for text in texts if text) or None, list(items[count:])


def leading_system_messages(items: Sequence[Any]) -> int:
    """How many system messages ``items`` begin with."""
    for index, item in enumerate(items):
        if not (isinstance(item, Mapping) and item.get("role") in SYSTEM_ROLES):
            return index
    return len(items)


def to_items(messages: Sequence[Any]) -> list[Any]:
    """Turn chat-completions messages about tools into items; what is an item already passes."""
    items: list[Any] = []
    for message in messages:
        role = message.get("role") if isinstance(message, Mapping) else None
        if role == "tool":
            output = text_of(message.get("content"))
            items.append(
                {
                    "type": "function_call_output",
                    "call_id": message.get("tool_call_id"),
                    "output": output,
                }
            )
        elif role == "assistant" and message.get("tool_calls"):
            if message.get("content"):
                items.append(_to_output_message(text_of(message["content"])))
            items.extend(_to_call_item(call) for call in message["tool_calls"])
        else:
            items.append(message)
    return items


def to_chat(
    items: Sequence[Any], instructions: Sequence[Instructions] = ()
) -> list[dict[str, Any]]:
    """Convert a session's items, and its system prompts, to JSON-safe chat messages.

    Raises:
        ValueError: an item is of no kind that chat completions can say.
    """
    chat = _Chat()
    pending = list(instructions)
    start = 0
    if pending and pending[0].position == 0:
        # The first system prompt holds the system messages that open the items.
        start = leading_system_messages(items)
    for index, item in enumerate(items[start:], start):
        while pending and pending[0].position <= index:
            chat.add_message({"role": "system", "content": pending.pop(0).text})
        chat.add_item(item)
    for late in pending:
        chat.add_message({"role": "system", "content": late.text})
    plain: list[dict[str, Any]] = to_json_value(chat.messages)
    return plain


def text_of(content: Any) -> str:
    """Return content as text; parts that are none become their JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(
        str(part["text"])
        if isinstance(part, Mapping) and part.get("type") in _TEXT_PARTS
        else json_text(to_json_value(part))
        for part in content
    )


class _Chat:
    """Chat messages in the making; the items of one assistant turn go into one message."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._turn: dict[str, Any] | None = None

    def add_message(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self._turn = None

    def add_item(self, item: Any) -> None:
        kind = item.get("type", "message") if isinstance(item, Mapping) else None
        match kind:
            case "message" if item.get("role") == "assistant":
                self._add_assistant(item)
            case "message" if "role" in item:
                self.add_item_message(item)
            case "function_call":
                self._assistant().setdefault("tool_calls", []).append(_to_call(item))
            case "function_call_output":
                content = _to_content(item["output"])
                message = {"role": "tool", "tool_call_id": item["call_id"], "content": content}
                self.add_message(message)
            case "reasoning":
                self._add_reasoning(item)
            case _:
                raise ValueError(f"no chat message can say an item of type {kind!r}")

    def add_item_message(self, item: Mapping[str, Any]) -> None:
        if item["role"] == "tool" or item.get("tool_calls"):
            for converted in to_items([item]):
                self.add_item(converted)
        else:
            self.add_message({"role": item["role"], "content": _to_content(item["content"])})

    def _add_assistant(self, item: Mapping[str, Any]) -> None:
        if item.get("tool_calls"):
            self.add_item_message(item)
            return
        content = item["content"]
        parts = [] if isinstance(content, str) else list(content or ())
        refusals = [part["refusal"] for part in parts if part.get("type") == "refusal"]
        said = [part for part in parts if part.get("type") != "refusal"] if parts else content
        turn = self._turn
        if turn is None or turn["content"] or "refusal" in turn:
            # Another message of the policy; only calls and reasoning join a message.
            turn = self._new_turn()
        turn["content"] = _to_content(said)
        if refusals:
            turn["refusal"] = "\n".join(refusals)

    def _add_reasoning(self, item: Mapping[str, Any]) -> None:
        text = text_of(item.get("content")) or text_of(item.get("summary"))
        if text:
            # The policy thinks before it speaks: reasoning opens a turn.
            self._new_turn()["reasoning_content"] = text

    def _assistant(self) -> dict[str, Any]:
        return self._turn if self._turn is not None else self._new_turn()

    def _new_turn(self) -> dict[str, Any]:
        turn: dict[str, Any] = {"role": "assistant", "content": ""}
        self.messages.append(turn)
        self._turn = turn
        return turn


def _to_content(content: Any) -> Any:
    if content is None or isinstance(content, str):
        return content or ""
    parts = [_to_part(part) for part in content]
    if all(part.get("type") == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _to_part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = part["type"]
    if kind in _TEXT_PARTS:
        return {"type": "text", "text": part["text"]}
    if kind == "input_image" and part.get("image_url"):
        image = {"url": part["image_url"]}
        if part.get("detail"):
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    if kind == "input_file":
        return {"type": "file", "file": {k: v for k, v in part.items() if k != "type"}}
    return dict(part)


def _to_call(item: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["call_id"], "type": "function", "function": function}


def _to_output_message(text: str) -> dict[str, Any]:
    # The SDK joins calls to a message of the policy, not to one of its short form.
    content = [{"type": "output_text", "text": text, "annotations": []}]
    shape = {"id": "prompt", "type": "message", "role": "assistant", "status": "completed"}
    return {**shape, "content": content}


def _to_call_item(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = function.get("arguments") or "{}"
    return {
        "type": "function_call",
        "call_id": call.get("id"),
        "name": function.get("name"),
        "arguments": arguments if isinstance(arguments, str) else json_text(arguments),
    }
