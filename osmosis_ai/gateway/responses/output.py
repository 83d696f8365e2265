"""A chat completion as the Response that means the same."""

import time
from typing import Any
from uuid import uuid4

from osmosis_ai.common.model_calls import Usage
from osmosis_ai.gateway.jsonvalues import nonempty, objects

_ECHOED: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "reasoning": {"effort": None, "summary": None},
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "user": None,
}
"""Fields of the request that a Response repeats, and what stands there when it had none."""

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def new_id(kind: str) -> str:
    """An id as OpenAI spells them, such as ``msg_…``."""
    return f"{kind}_{uuid4().hex}"


def empty_response(request: dict[str, Any], model: str | None) -> dict[str, Any]:
    """A Response that has just begun."""
    echoed = {
        key: default if request.get(key) is None else request[key]
        for key, default in _ECHOED.items()
    }
    return echoed | {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": model or request.get("model") or "",
        "output": [],
        "previous_response_id": None,
        "store": False,
        "truncation": "disabled",
        "usage": None,
    }


def ended(
    response: dict[str, Any],
    output: list[dict[str, Any]],
    finish_reason: str | None,
    usage: Usage | None,
) -> dict[str, Any]:
    """The same Response with its outcome."""
    reason = _INCOMPLETE.get(finish_reason or "")
    return response | {
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": output,
        "usage": None if usage is None else _usage(usage),
    }


def to_response(
    request: dict[str, Any], answer: dict[str, Any], usage: Usage | None
) -> dict[str, Any]:
    """Translate a whole answer; of several choices, the first."""
    response = empty_response(request, nonempty(answer.get("model")))
    choice = next(iter(objects(answer.get("choices"))), {})
    message = choice.get("message")
    output = _items(message, choice) if isinstance(message, dict) else []
    reason = choice.get("finish_reason")
    return ended(response, output, reason if isinstance(reason, str) else None, usage)


def reasoning_text(message: dict[str, Any]) -> str | None:
    """Reasoning beside a message or a delta, under either name that servers use."""
    return nonempty(message.get("reasoning_content")) or nonempty(message.get("reasoning"))


def reasoning_item(text: str, item_id: str | None = None) -> dict[str, Any]:
    """Reasoning as an output item."""
    content = [{"type": "reasoning_text", "text": text}]
    return {
        "id": item_id or new_id("rs"),
        "type": "reasoning",
        "summary": [],
        "content": content,
        "status": "completed",
    }


def message_item(parts: list[dict[str, Any]], item_id: str, status: str) -> dict[str, Any]:
    """A message of the assistant as an output item."""
    return {
        "id": item_id,
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": parts,
    }


def text_part(text: str, logprobs: list[Any]) -> dict[str, Any]:
    """Text within a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


def call_item(item_id: str, call_id: str, name: str, arguments: str, status: str) -> dict[str, Any]:
    """A function call as an output item."""
    return {
        "id": item_id,
        "type": "function_call",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": status,
    }


def logprobs_of(choice: dict[str, Any]) -> list[Any]:
    """The log probabilities of a choice; both APIs give each the same shape."""
    logprobs = choice.get("logprobs")
    return objects(logprobs.get("content")) if isinstance(logprobs, dict) else []


def _items(message: dict[str, Any], choice: dict[str, Any]) -> list[dict[str, Any]]:
    items = []
    if text := reasoning_text(message):
        items.append(reasoning_item(text))
    parts: list[dict[str, Any]] = []
    if text := nonempty(message.get("content")):
        parts.append(text_part(text, logprobs_of(choice)))
    if text := nonempty(message.get("refusal")):
        parts.append({"type": "refusal", "refusal": text})
    if parts:
        items.append(message_item(parts, new_id("msg"), "completed"))
    for call in objects(message.get("tool_calls")):
        function = call.get("function")
        said = function if isinstance(function, dict) else {}
        items.append(
            call_item(
                new_id("fc"),
                nonempty(call.get("id")) or new_id("call"),
                str(said.get("name") or ""),
                str(said.get("arguments") or ""),
                "completed",
            )
        )
    return items


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
