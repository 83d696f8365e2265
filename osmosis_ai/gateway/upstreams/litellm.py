"""A provider that LiteLLM knows as the upstream; LiteLLM runs on the host only."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl

import anyio

from osmosis_ai.gateway.errors import UpstreamError, not_found
from osmosis_ai.gateway.limits import GatewayLimits
from osmosis_ai.gateway.sse import DONE, encode_event
from osmosis_ai.gateway.upstreams.base import UpstreamCall, UpstreamReply

PREFIX = "litellm/"

_PARAMETERS = frozenset({"api_base", "api_version"})

_CHAT_FIELDS = frozenset(
    [
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "modalities",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "stream",
        "stream_options",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    ]
)
"""What may become an argument of LiteLLM. Anything else that an agent sends, ``api_base``
for one, goes into the body for the provider, where it cannot steer LiteLLM."""


class LitellmUpstream:
    """Answers calls through ``litellm.acompletion``.

    LiteLLM takes seconds to import, so that happens in a thread at the first call.

    Raises:
        ValueError: the name is not ``litellm/<provider>/<model>``, a parameter is
            unknown, or LiteLLM is not installed.
    """

    def __init__(self, spec: str, *, api_key: str | None, limits: GatewayLimits) -> None:
        self.serves_responses: bool | None = False
        self._model, _, parameters = spec.removeprefix(PREFIX).partition("?")
        provider, _, model = self._model.partition("/")
        if not provider or not model:
            raise ValueError(f"upstream must be '{PREFIX}<provider>/<model>', got {spec!r}")
        self._options = dict(parse_qsl(parameters, strict_parsing=bool(parameters)))
        if unknown := self._options.keys() - _PARAMETERS:
            raise ValueError(
                f"upstream {spec!r} has unknown parameters {sorted(unknown)}; "
                f"known are {sorted(_PARAMETERS)}"
            )
        if find_spec("litellm") is None:
            raise ValueError(f"upstream {spec!r} needs LiteLLM: pip install 'osmosis-ai[litellm]'")
        self._api_key = api_key
        self._timeout_sec = limits.upstream_idle_sec

    @asynccontextmanager
    async def send(self, call: UpstreamCall) -> AsyncIterator[UpstreamReply]:
        """See ``Upstream.send``."""
        match call.method, call.resource:
            case "GET", "models":
                model = {"id": self._model, "object": "model", "created": 0, "owned_by": "litellm"}
                yield _json_reply(200, {"object": "list", "data": [model]})
            case "POST", "chat/completions":
                litellm = await anyio.to_thread.run_sync(_import_litellm)
                yield await self._chat(litellm, call.payload)
            case _:
                raise not_found(f"LiteLLM has no {call.method} {call.resource} here")

    async def _chat(self, litellm: Any, payload: dict[str, Any]) -> UpstreamReply:
        arguments = {key: value for key, value in payload.items() if key in _CHAT_FIELDS}
        extra = {
            key: value for key, value in payload.items() if key not in _CHAT_FIELDS | {"model"}
        }
        if extra:
            arguments["extra_body"] = extra
        try:
            answer = await litellm.acompletion(
                **arguments,
                **self._options,
                model=self._model,
                api_key=self._api_key,
                timeout=self._timeout_sec,
                max_retries=0,
                num_retries=0,
            )
        except Exception as exc:
            return _refusal(exc)
        priced = partial(_with_cost, litellm, self._model)
        if payload.get("stream") is True:
            headers = [("content-type", "text/event-stream")]
            return UpstreamReply(200, headers, _events(answer, priced))
        return _json_reply(200, priced(answer.model_dump(mode="json", exclude_unset=False)))


def _import_litellm() -> Any:
    # Without it the import tries to fetch a price list, with retries.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    return litellm


def _refusal(error: Exception) -> UpstreamReply:
    """A provider's refusal with the status it came with; what has none is no answer.

    Raises:
        UpstreamError: LiteLLM failed before a provider answered.
    """
    status = getattr(error, "status_code", None)
    if not isinstance(status, int) or not 400 <= status <= 599:
        raise UpstreamError(
            f"LiteLLM failed: {type(error).__name__}: {error}", code="upstream_failed"
        ) from error
    body = {"message": str(error), "type": type(error).__name__, "code": status}
    return _json_reply(status, {"error": body})


async def _events(answer: Any, priced: Any) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer:
            yield encode_event(priced(chunk.model_dump(mode="json", exclude_none=True)))
    except UpstreamError:
        raise
    except Exception as exc:
        raise UpstreamError(
            f"LiteLLM's stream broke off: {type(exc).__name__}: {exc}", code="upstream_broke_off"
        ) from exc
    yield f"data: {DONE}\n\n".encode()


def _with_cost(litellm: Any, model: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with ``usage.cost`` in US dollars, when LiteLLM knows the model's price."""
    usage = answer.get("usage")
    known = model in litellm.model_cost or model.partition("/")[2] in litellm.model_cost
    if not isinstance(usage, dict) or not known:
        return answer
    prompt, completion = litellm.cost_per_token(model=model, usage_object=litellm.Usage(**usage))
    return answer | {"usage": usage | {"cost": prompt + completion}}


def _json_reply(status: int, value: object) -> UpstreamReply:
    return UpstreamReply(
        status, [("content-type", "application/json")], _once(json.dumps(value).encode())
    )


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
