"""Chat-completions messages to ATIF steps.

A tool's result goes into the step of the agent that called it, found by the
call's id going backwards, however many messages lie between them. What a step
has no field for is kept in ``extra``: ``original_role``, ``message_fields``,
and the marks of ``content``. Nothing is made up.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from osmosis_ai.rollout.trajectory.atif import (
    Observation,
    ObservationResult,
    Step,
)
from osmosis_ai.rollout.trajectory.calls import calls_to_atif
from osmosis_ai.rollout.trajectory.content import content_to_atif
from osmosis_ai.rollout.trajectory.plain import json_text
from osmosis_ai.rollout.trajectory.telemetry import read_telemetry
from osmosis_ai.rollout.types.json_safe import to_json_value

ORIGINAL_ROLE = "original_role"
MESSAGE_FIELDS = "message_fields"
JSON_REASONING = "json_reasoning"
TOOL_CALL_ID = "tool_call_id"
NO_MESSAGES = "no_messages"

_SOURCES: dict[str, Literal["system", "user", "agent"]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "agent",
}
_ROLE_OF_SOURCE = {"system": "system", "user": "user", "agent": "assistant"}
_RESULT_ROLES = ("tool", "function")


def messages_to_steps(messages: Sequence[Mapping[str, Any]]) -> list[Step]:
    """Convert a conversation; an empty one becomes a single step that says so."""
    steps: list[Step] = []
    calls = _Calls()
    for message in to_json_value(messages):
        if message.get("role") in _RESULT_ROLES:
            _add_result(steps, calls, message)
        else:
            steps.append(step := _step(message, len(steps) + 1))
            calls.add(step)
    if not steps:
        steps.append(Step(step_id=1, source="system", message="", extra={NO_MESSAGES: True}))
    return steps


def _step(message: dict[str, Any], step_id: int) -> Step:
    role = message.get("role")
    source = _SOURCES.get(role, "user") if isinstance(role, str) else "user"
    is_agent = source == "agent"
    telemetry = read_telemetry(message, is_agent=is_agent)
    content = content_to_atif(message.get("content"))
    reasoning = message.get("reasoning_content")
    calls = message.get("tool_calls")

    extra: dict[str, Any] = {}
    if "role" in message and role != _ROLE_OF_SOURCE[source]:
        extra[ORIGINAL_ROLE] = role
    extra |= content.marks
    if is_agent and reasoning is not None and not isinstance(reasoning, str):
        reasoning = json_text(reasoning)
        extra[JSON_REASONING] = True
    if not is_agent:
        extra |= _present(reasoning_content=reasoning, tool_calls=calls)
    handled = {"role", "content", "reasoning_content", "tool_calls", *telemetry.used}
    rest = {key: value for key, value in message.items() if key not in handled}
    if rest:
        extra[MESSAGE_FIELDS] = rest

    return Step(
        step_id=step_id,
        source=source,
        message=content.content,
        timestamp=telemetry.timestamp,
        model_name=telemetry.model_name,
        reasoning_content=reasoning if is_agent else None,
        tool_calls=calls_to_atif(calls) if is_agent else None,
        metrics=telemetry.metrics,
        llm_call_count=None if telemetry.metrics is None else 1,
        extra=extra or None,
    )


class _Calls:
    """Which step a tool's result belongs to, at a constant cost however long the conversation.

    Models number their calls anew in every turn, so ids repeat.
    """

    def __init__(self) -> None:
        self.last_agent: Step | None = None
        self._latest: dict[str, Step] = {}
        self._unanswered: dict[str, list[Step]] = {}

    def add(self, step: Step) -> None:
        """The next step of the conversation."""
        if step.source == "agent":
            self.last_agent = step
        for call in step.tool_calls or []:
            self._latest[call.tool_call_id] = step
            self._unanswered.setdefault(call.tool_call_id, []).append(step)

    def answer(self, call_id: str) -> Step | None:
        """The latest step with an unanswered call of this id, else the latest with one."""
        waiting = self._unanswered.get(call_id)
        return waiting.pop() if waiting else self._latest.get(call_id)


def _add_result(steps: list[Step], calls: _Calls, message: dict[str, Any]) -> None:
    """Put a tool's result where its call is, else at the last step of the agent."""
    call_id = message.get(TOOL_CALL_ID)
    owner = calls.answer(call_id) if isinstance(call_id, str) else None
    result = _result(message, matched=owner is not None)
    if owner is None:
        owner = calls.last_agent
    if owner is None:
        steps.append(
            Step(
                step_id=len(steps) + 1,
                source="system",
                message="",
                observation=Observation(results=[result]),
                extra={ORIGINAL_ROLE: message["role"]},
            )
        )
    elif owner.observation is None:
        owner.observation = Observation(results=[result])
    else:
        owner.observation.results.append(result)


def _result(message: dict[str, Any], *, matched: bool) -> ObservationResult:
    call_id = message.get(TOOL_CALL_ID)
    content = content_to_atif(message.get("content"))
    extra = dict(content.marks)
    if not matched:
        extra |= _present(tool_call_id=call_id)
    if message["role"] != "tool":
        extra[ORIGINAL_ROLE] = message["role"]
    handled = ("role", "content", TOOL_CALL_ID)
    rest = {key: value for key, value in message.items() if key not in handled}
    if rest:
        extra[MESSAGE_FIELDS] = rest
    return ObservationResult(
        source_call_id=call_id if matched else None,
        content=content.content,
        extra=extra or None,
    )


def _present(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
