"""A saved trajectory back to the messages that a grader reads."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from osmosis_ai.rollout.trajectory.calls import call_from_atif
from osmosis_ai.rollout.trajectory.content import content_from_atif
from osmosis_ai.rollout.trajectory.convert import (
    JSON_REASONING,
    MESSAGE_FIELDS,
    NO_MESSAGES,
    ORIGINAL_ROLE,
    TOOL_CALL_ID,
)

_ROLES = {"system": "system", "user": "user", "agent": "assistant"}


def messages_from_trajectory(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the chat-completions messages of an ATIF document of any producer.

    A document with a ``messages`` list yields that list as it is. An agent's
    step becomes an assistant message followed by one ``tool`` message per
    result.

    Raises:
        ValueError: the document has neither ``messages`` nor ``steps``.
    """
    messages = document.get("messages")
    if isinstance(messages, list):
        return messages
    steps = document.get("steps")
    if not isinstance(steps, list):
        raise ValueError(
            "not a trajectory: expected an ATIF document with a 'steps' list, or an object with "
            f"a 'messages' list, got the keys {sorted(map(str, document))}"
        )
    return [message for step in steps for message in _step_messages(step)]


def _step_messages(step: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    extra = step.get("extra") or {}
    if extra.get(NO_MESSAGES):
        return
    results = (step.get("observation") or {}).get("results") or []
    only_results = step.get("source") == "system" and results and step.get("message") == ""
    if not only_results:
        yield _message(step, extra)
    for result in results:
        yield _tool_message(result)


def _message(step: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": extra.get(ORIGINAL_ROLE, _ROLES.get(str(step.get("source")), "user")),
        "content": content_from_atif(step.get("message"), extra),
    }
    reasoning = step.get("reasoning_content", extra.get("reasoning_content"))
    if reasoning is not None:
        message["reasoning_content"] = (
            json.loads(reasoning) if extra.get(JSON_REASONING) else reasoning
        )
    calls = step.get("tool_calls")
    if calls:
        message["tool_calls"] = [call_from_atif(call) for call in calls]
    elif extra.get("tool_calls") is not None:
        message["tool_calls"] = extra["tool_calls"]
    return {**message, **extra.get(MESSAGE_FIELDS, {})}


def _tool_message(result: Mapping[str, Any]) -> dict[str, Any]:
    extra = result.get("extra") or {}
    message: dict[str, Any] = {"role": extra.get(ORIGINAL_ROLE, "tool")}
    call_id = result.get("source_call_id", extra.get(TOOL_CALL_ID))
    if call_id is not None:
        message["tool_call_id"] = call_id
    message["content"] = content_from_atif(result.get("content"), extra)
    return {**message, **extra.get(MESSAGE_FIELDS, {})}
