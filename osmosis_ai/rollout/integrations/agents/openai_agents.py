"""Agents of the OpenAI Agents SDK that call the policy of the active rollout.

Importing this module gives the SDK, unless it has one already, a trace
provider without the exporter that would send every run to OpenAI's backend.
Processors of your own, added with ``agents.add_trace_processor``, get the traces.
"""

import inspect
from typing import Any

from osmosis_ai.common.extras import needs_extra

with needs_extra("openai-agents", "The OpenAI Agents integration", "agents", "openai"):
    from agents import Agent
    from agents.tracing import set_trace_provider
    from agents.tracing import setup as trace_setup
    from agents.tracing.provider import DefaultTraceProvider

from osmosis_ai.rollout.integrations.agents.openai_agents_model import (
    BoundRolloutModel,
    OsmosisRolloutModel,
)
from osmosis_ai.rollout.integrations.agents.openai_agents_session import (
    OsmosisMemorySession,
    SessionSampleSource,
)

__all__ = [
    "BoundRolloutModel",
    "OsmosisAgent",
    "OsmosisLitellmModel",
    "OsmosisMemorySession",
    "OsmosisRolloutModel",
    "SessionSampleSource",
]

OsmosisLitellmModel = BoundRolloutModel
"""The bound model under its documented name; there is no LiteLLM in it."""

if trace_setup.GLOBAL_TRACE_PROVIDER is None:
    set_trace_provider(DefaultTraceProvider())


class OsmosisAgent(Agent[Any]):
    """An ``agents.Agent`` whose placeholder model is bound to the active rollout.

    Takes the arguments of ``agents.Agent``. Any model but an
    ``OsmosisRolloutModel`` is left as it is. Agents of one rollout, such as
    those handed off to, share its one ``OsmosisMemorySession``.

    Raises:
        RuntimeError: the model is a placeholder and no rollout is active, or
            the rollout has no chat-completions URL.
    """

    def __init__(self, *args: Any, model: Any = None, **kwargs: Any) -> None:
        given = {} if model is None else {"model": model}
        arguments = inspect.signature(Agent).bind_partial(*args, **given, **kwargs).arguments
        placeholder = arguments.get("model")
        if isinstance(placeholder, OsmosisRolloutModel):
            arguments["model"] = BoundRolloutModel(
                params=placeholder.params,
                client_args=placeholder.client_args,
                stream=placeholder.stream,
                **placeholder.model_config,
            )
        super().__init__(**arguments)
