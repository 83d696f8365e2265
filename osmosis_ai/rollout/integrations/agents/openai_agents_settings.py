"""How the ``params`` of a placeholder and the agent's ``ModelSettings`` become one request."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents.model_settings import ModelSettings

# Settings that the SDK's chat-completions model sends under their own name.
_SENT = (
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "max_tokens",
    "parallel_tool_calls",
    "store",
    "verbosity",
    "top_logprobs",
    "prompt_cache_retention",
    "prompt_cache_options",
    "metadata",
    "extra_headers",
    "extra_query",
    "extra_body",
)
_NOT_PARAMS = {
    "model": "the active rollout decides which model answers",
    "messages": "they are the run's input and session",
    "tools": "pass tools= to the agent",
    "tool_choice": (
        "pass ModelSettings(tool_choice=...), which the SDK resets after a tool ran; "
        "in params it would force a tool call in every turn"
    ),
    "stream": "Runner.run_streamed and OsmosisRolloutModel(stream=True) stream",
}


def checked_params(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of ``params``.

    Raises:
        ValueError: one of them belongs elsewhere; the text says where.
    """
    for name in params or ():
        if name in _NOT_PARAMS:
            raise ValueError(
                f"OsmosisRolloutModel takes no {name!r} in params: {_NOT_PARAMS[name]}"
            )
    return dict(params or {})


def with_params(
    settings: ModelSettings, params: Mapping[str, Any], *, structured: bool
) -> ModelSettings:
    """Return ``settings`` with ``params`` wherever they say nothing.

    ``params`` are arguments of the OpenAI client. A field that is set in
    ``settings`` wins over the param of that meaning; of two mappings
    (``extra_body`` …) each key does. With ``structured`` the agent's
    ``output_type`` decides the response format.
    """
    explicit = settings.extra_args or {}
    changes: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in params.items():
        if name in explicit or _said_otherwise(name, settings, structured):
            continue
        if name not in _SENT:
            extra[name] = value
            continue
        given = getattr(settings, name)
        if given is None:
            changes[name] = value
        elif isinstance(given, Mapping):
            changes[name] = {**value, **given}
    if extra or explicit:
        changes["extra_args"] = {**extra, **explicit}
    return replace(settings, **changes) if changes else settings


def _said_otherwise(name: str, settings: ModelSettings, structured: bool) -> bool:
    match name:
        case "response_format":
            return structured
        case "reasoning_effort":
            return settings.reasoning is not None and settings.reasoning.effort is not None
        case "stream_options":
            return settings.include_usage is not None
        case "max_completion_tokens":
            return settings.max_tokens is not None
        case _:
            return False
