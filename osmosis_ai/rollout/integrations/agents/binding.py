"""What every integration does to bind a placeholder model to the active rollout."""

import inspect
from collections.abc import Mapping
from typing import Any

from osmosis_ai.rollout.context import RolloutContext, get_rollout_context

MODEL_ID = "osmosis-rollout"
NO_KEY = "no-key-needed"

_ROUTED = ("base_url", "api_key")


def refuse_routing(*arguments: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """Refuse arguments of a placeholder that would choose the model or its endpoint.

    Raises:
        ValueError: naming the first such argument.
    """
    for name in (*names, *_ROUTED):
        if any(name in given for given in arguments):
            raise ValueError(
                f"OsmosisRolloutModel takes no {name!r}: the active rollout decides which "
                "model answers and where; leave it out"
            )


def active_context(user: str) -> RolloutContext:
    """Return the active rollout's context for ``user``, the class that needs one.

    Raises:
        RuntimeError: no rollout is active, or it has no chat-completions URL.
    """
    context = get_rollout_context()
    if context is None:
        raise RuntimeError(
            f"OsmosisRolloutModel needs an active rollout: build {user} inside "
            "AgentWorkflow.run(), or inside 'with RolloutContext(chat_completions_url=...)'"
        )
    if not context.chat_completions_url:
        raise RuntimeError(
            f"Rollout {context.rollout_id!r} has no chat_completions_url, so there is no policy "
            "to call: pass it to RolloutContext, or set OSMOSIS_CHAT_COMPLETIONS_URL"
        )
    return context


def client_arguments(context: RolloutContext, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an OpenAI client that calls the rollout's policy."""
    return {
        **given,
        "base_url": context.chat_completions_url,
        "api_key": context.api_key or NO_KEY,
    }


def request_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``params`` as arguments of the OpenAI client's ``create``.

    The client refuses names it does not know; those go into ``extra_body``, so
    that an inference server's own parameters (``top_k``, ``min_p`` …) pass.
    """
    if not params:
        return {}
    from openai.resources.chat.completions import AsyncCompletions

    known = inspect.signature(AsyncCompletions.create).parameters
    arguments = {name: value for name, value in params.items() if name in known}
    other = {name: value for name, value in params.items() if name not in known}
    if other:
        arguments["extra_body"] = {**other, **(arguments.get("extra_body") or {})}
    return arguments
