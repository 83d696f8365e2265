"""The placeholder model of the OpenAI Agents SDK, and the model that it is bound to."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from agents.agent_output import AgentOutputSchemaBase
from agents.exceptions import ModelBehaviorError
from agents.handoffs import Handoff
from agents.items import ModelResponse, TResponseInputItem, TResponseStreamEvent
from agents.model_settings import ModelSettings
from agents.models.interface import Model, ModelTracing
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.tool import Tool
from agents.usage import Usage
from openai.types.responses import ResponseCompletedEvent
from openai.types.responses.response_prompt_param import ResponsePromptParam

from osmosis_ai.rollout.closing import close_after_run
from osmosis_ai.rollout.integrations.agents.binding import (
    MODEL_ID,
    active_context,
    client_arguments,
    refuse_routing,
    request_arguments,
)
from osmosis_ai.rollout.integrations.agents.openai_agents_items import lift_system, to_items
from osmosis_ai.rollout.integrations.agents.openai_agents_session import SessionSampleSource
from osmosis_ai.rollout.integrations.agents.openai_agents_settings import (
    checked_params,
    with_params,
)
from osmosis_ai.rollout.integrations.agents.policy_client import make_client


class OsmosisRolloutModel(Model):
    """Stands for the policy of whatever rollout is active when an agent is built.

    ``params`` go into every chat-completions request (``temperature``,
    ``max_tokens`` …) where the agent's ``ModelSettings`` leave the field unset;
    ``client_args`` go to the OpenAI client (``timeout``, ``max_retries`` …).
    ``stream=True`` streams every call, also those of ``Runner.run``, for
    endpoints that only stream. The rest goes to the SDK's
    ``OpenAIChatCompletionsModel``. It holds plain data, so a config that
    carries it can be copied per run.

    Raises:
        ValueError: an argument would choose the model or its endpoint, which
            the rollout does, or a param belongs elsewhere.
    """

    def __init__(
        self,
        *,
        params: Mapping[str, Any] | None = None,
        client_args: Mapping[str, Any] | None = None,
        stream: bool = False,
        **model_config: Any,
    ) -> None:
        self.client_args = dict(client_args or {})
        refuse_routing(model_config, self.client_args, names=("model", "openai_client"))
        self.params = checked_params(params)
        self.stream = stream
        self.model_config = model_config

    async def get_response(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: a placeholder answers nothing."""
        raise NotImplementedError(_PLACEHOLDER_CALLED)

    def stream_response(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: a placeholder answers nothing."""
        raise NotImplementedError(_PLACEHOLDER_CALLED)


_PLACEHOLDER_CALLED = (
    "OsmosisRolloutModel is a placeholder and cannot be called; give it to OsmosisAgent, "
    "which binds it to the active rollout"
)


class BoundRolloutModel(OpenAIChatCompletionsModel):
    """The policy of the rollout that is active when this is made.

    Takes the arguments of ``OsmosisRolloutModel``.

    Raises:
        RuntimeError: no rollout is active, or it has no chat-completions URL;
            on a call, also when the rollout has no sample source.
    """

    def __init__(
        self,
        *,
        params: Mapping[str, Any] | None = None,
        client_args: Mapping[str, Any] | None = None,
        stream: bool = False,
        **model_config: Any,
    ) -> None:
        self._context = active_context("OsmosisAgent")
        self._params = request_arguments(checked_params(params))
        self._stream = stream
        client = make_client(client_arguments(self._context, client_args or {}))
        close_after_run(client.close)
        super().__init__(MODEL_ID, client, **model_config)

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: ResponsePromptParam | None = None,
    ) -> ModelResponse:
        """Call the policy; see ``agents.Model``."""
        if self._stream:
            events = self.stream_response(
                system_instructions,
                input,
                model_settings,
                tools,
                output_schema,
                handoffs,
                tracing,
                previous_response_id,
                conversation_id,
                prompt,
            )
            return await _last_response(events)
        instructions, items = self._prepare(system_instructions, input)
        return await super().get_response(
            instructions,
            items,
            with_params(model_settings, self._params, structured=_is_structured(output_schema)),
            tools,
            output_schema,
            handoffs,
            tracing,
            previous_response_id,
            conversation_id,
            prompt,
        )

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: ResponsePromptParam | None = None,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Call the policy and stream its answer; see ``agents.Model``."""
        instructions, items = self._prepare(system_instructions, input)
        settings = with_params(
            model_settings, self._params, structured=_is_structured(output_schema)
        )
        if settings.include_usage is None and "stream_options" not in self._params:
            settings = replace(settings, include_usage=True)
        async for event in super().stream_response(
            instructions,
            items,
            settings,
            tools,
            output_schema,
            handoffs,
            tracing,
            previous_response_id,
            conversation_id,
            prompt,
        ):
            yield event

    def _prepare(
        self, instructions: str | None, input: str | list[TResponseInputItem]
    ) -> tuple[str | None, str | list[TResponseInputItem]]:
        source = self._context.sample_source
        if source is None:
            raise RuntimeError(
                f"Rollout {self._context.rollout_id!r} has no sample source, so this call would "
                "be lost: make one OsmosisMemorySession() in run() and pass it as session= to "
                "Runner.run()"
            )
        given: list[Any] = [{"role": "user", "content": input}] if isinstance(input, str) else input
        lifted, items = lift_system(instructions, to_items(given))
        if isinstance(source, SessionSampleSource):
            source.note_call(lifted, given)
        return lifted, items


def _is_structured(schema: AgentOutputSchemaBase | None) -> bool:
    return schema is not None and not schema.is_plain_text()


async def _last_response(events: AsyncIterator[TResponseStreamEvent]) -> ModelResponse:
    completed: ResponseCompletedEvent | None = None
    async for event in events:
        if isinstance(event, ResponseCompletedEvent):
            completed = event
    if completed is None:
        raise ModelBehaviorError("The policy's stream ended without a complete answer")
    response = completed.response
    counts = response.usage
    usage = Usage(requests=1)
    if counts is not None:
        usage = Usage(
            requests=1,
            input_tokens=counts.input_tokens,
            output_tokens=counts.output_tokens,
            total_tokens=counts.total_tokens,
            input_tokens_details=counts.input_tokens_details,
            output_tokens_details=counts.output_tokens_details,
        )
    return ModelResponse(output=response.output, usage=usage, response_id=None)
