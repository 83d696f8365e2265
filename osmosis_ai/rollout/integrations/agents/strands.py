"""Strands agents that call the policy of the active rollout."""

import copy
import inspect
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from osmosis_ai.common.extras import needs_extra
from osmosis_ai.rollout.closing import close_after_run
from osmosis_ai.rollout.context import RolloutContext, SampleSource
from osmosis_ai.rollout.integrations.agents.binding import (
    MODEL_ID,
    active_context,
    client_arguments,
    refuse_routing,
    request_arguments,
)
from osmosis_ai.rollout.integrations.agents.policy_client import PolicyClient
from osmosis_ai.rollout.integrations.agents.strands_messages import to_chat, to_strands
from osmosis_ai.rollout.types.sample import RolloutSample

with needs_extra("strands", "The Strands integration", "strands"):
    from strands import Agent
    from strands.models.model import Model

    from osmosis_ai.rollout.integrations.agents.strands_history import StrandsHistory

if TYPE_CHECKING:
    from strands.models.openai import OpenAIModel

__all__ = ["OsmosisRolloutModel", "OsmosisStrandsAgent", "StrandsAgentSampleSource"]

logger = logging.getLogger(__name__)


class OsmosisRolloutModel(Model):
    """Stands for the policy of whatever rollout is active when an agent is built.

    ``params`` go into every chat-completions request: the parameters of OpenAI's
    API (``temperature``, ``max_tokens`` …) and any other that the policy's server
    takes (``top_k`` …). ``client_args`` go to the OpenAI client (``timeout``,
    ``max_retries`` …), the rest to Strands' ``OpenAIModel`` (``stream`` …).
    It holds plain data, so a config that carries it can be copied per run.

    Raises:
        ValueError: an argument would choose the model or its endpoint, which
            the rollout does.
    """

    def __init__(
        self,
        *,
        params: Mapping[str, Any] | None = None,
        client_args: Mapping[str, Any] | None = None,
        **model_config: Any,
    ) -> None:
        refuse_routing(model_config, client_args or {}, names=("model_id", "client"))
        self.client_args = dict(client_args or {})
        self.config = {**model_config, "params": None if params is None else dict(params)}

    def update_config(self, **model_config: Any) -> None:
        """Change what the model is bound with later."""
        self.config.update(model_config)

    def get_config(self) -> dict[str, Any]:
        """Return what the model is bound with."""
        return self.config

    def stream(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: a placeholder answers nothing."""
        raise RuntimeError(_PLACEHOLDER_CALLED)

    def structured_output(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: a placeholder answers nothing."""
        raise RuntimeError(_PLACEHOLDER_CALLED)


_PLACEHOLDER_CALLED = (
    "OsmosisRolloutModel is a placeholder and cannot be called; give it to OsmosisStrandsAgent, "
    "which binds it to the active rollout"
)


class OsmosisStrandsAgent(Agent):
    """A ``strands.Agent`` whose conversation is the rollout's sample.

    Takes the arguments of ``strands.Agent``. ``messages`` may be
    chat-completions-shaped, as ``ctx.prompt`` is; their system messages go
    before ``system_prompt``. With an ``OsmosisRolloutModel`` the agent calls
    the rollout's policy and registers itself as the sample's source; with any
    other model it is a plain Strands agent.

    Raises:
        RuntimeError: the model is a placeholder and no rollout is active, or
            the rollout has no chat-completions URL.
        ValueError: the rollout has a sample source already.
    """

    def __init__(
        self,
        *args: Any,
        messages: Sequence[Mapping[str, Any]] | None = None,
        model: Any = None,
        **kwargs: Any,
    ) -> None:
        named = {"messages": messages, "model": model}
        given = {name: value for name, value in named.items() if value is not None}
        arguments = inspect.signature(Agent).bind_partial(*args, **given, **kwargs).arguments

        history = to_strands(arguments.get("messages") or [])
        arguments["messages"] = history.messages
        if history.system:
            arguments["system_prompt"] = _joined_system_prompt(
                history.system, arguments.get("system_prompt")
            )
        placeholder = arguments.get("model")
        context: RolloutContext | None = None
        if isinstance(placeholder, OsmosisRolloutModel):
            context = active_context("OsmosisStrandsAgent")
            arguments["model"] = _bind(placeholder, context)
        super().__init__(**arguments)
        if context is not None:
            context.set_sample_source(StrandsAgentSampleSource(self))


class StrandsAgentSampleSource(SampleSource):
    """The conversation of a Strands agent as a sample.

    ``messages`` are Strands' own, also those that the agent's conversation
    manager removed since; ``trajectory_messages`` a chat-completions copy with
    the system prompt in front.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._history = StrandsHistory(agent)

    async def get_sample(self) -> RolloutSample:
        """Return the conversation so far."""
        messages = self._history.messages
        return RolloutSample(
            messages=messages,
            trajectory_messages=_chat_copy(messages, self.agent.system_prompt_content),
        )

    async def get_preview(self, max_messages: int) -> RolloutSample | None:
        """Return a copy of the latest ``max_messages`` messages; ``None`` for none."""
        if max_messages <= 0:
            return None
        latest = copy.deepcopy(self._history.messages[-max_messages:])
        return RolloutSample(messages=latest, trajectory_messages=_chat_copy(latest, None))


def _bind(placeholder: OsmosisRolloutModel, context: RolloutContext) -> "OpenAIModel":
    # The OpenAI client costs more to import than Strands itself, so only a process
    # that runs an agent pays for it, not one that merely reads a rollout's config.
    with needs_extra("strands", "The Strands integration", "openai"):
        from strands.models.openai import OpenAIModel

    client = PolicyClient(client_arguments(context, placeholder.client_args))
    close_after_run(client.close)
    config = copy.deepcopy(placeholder.config)
    if config.get("params"):
        config["params"] = request_arguments(config["params"])
    return OpenAIModel(client=client, model_id=MODEL_ID, **config)


def _joined_system_prompt(lifted: list[str], given: Any) -> Any:
    if isinstance(given, list):
        return [*({"text": text} for text in lifted), *given]
    return "\n\n".join([*lifted, given] if given else lifted)


def _chat_copy(messages: Sequence[Any], system: Sequence[Any] | None) -> list[Any] | None:
    try:
        return to_chat(messages, system)
    except Exception as exc:
        logger.warning(
            "Failed to convert Strands messages for trajectory persistence: %s: %s",
            type(exc).__name__,
            exc,
        )
        return None
