"""Which API to speak to an upstream for what an agent asks."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from typing import Any

from osmosis_ai.gateway.bodies import read_reply
from osmosis_ai.gateway.capture import RequestBody, with_capture
from osmosis_ai.gateway.dialect import ChatDialect, Dialect
from osmosis_ai.gateway.endpoint import Endpoint
from osmosis_ai.gateway.responses.dialects import NativeDialect, TranslatedDialect
from osmosis_ai.gateway.responses.request import to_chat
from osmosis_ai.gateway.upstreams.base import UpstreamReply


@dataclass(frozen=True)
class AgentRequest:
    """What the agent posted, and to which resource."""

    resource: str
    body: bytes
    payload: dict[str, Any]


def dialects(request: AgentRequest, endpoint: Endpoint) -> Iterator[Dialect]:
    """Yield the ways to ask, best first; a later one is for an upstream that lacks the earlier.

    Raises:
        ApiError: 400, the request cannot be translated and would have to be.
    """
    body, payload = _renamed(request, endpoint.model)
    if request.resource == "chat/completions":
        chat_request = with_capture(body, payload, endpoint.capture)
        yield ChatDialect(chat_request, endpoint.limits.max_record_bytes)
        return
    # Token ids and log probabilities are given for chat completions only.
    if endpoint.upstream.serves_responses is not False and not endpoint.capture.needs_chat:
        yield NativeDialect(RequestBody(body, payload))
    chat = to_chat(payload)
    translated = with_capture(json.dumps(chat).encode(), chat, endpoint.capture)
    yield TranslatedDialect(translated, payload, endpoint.limits)


async def lacks_resource(reply: UpstreamReply, max_bytes: int) -> tuple[bool, UpstreamReply]:
    """Return whether the upstream has no such resource, and the reply, still to be read.

    A 404 about the model says nothing about the resource.
    """
    if reply.status not in {404, 405}:
        return False, reply
    body = await read_reply(reply.body, max_bytes)
    return not _is_about_the_model(body), replace(reply, body=_again(body))


def _renamed(request: AgentRequest, model: str | None) -> tuple[bytes, dict[str, Any]]:
    if model is None or request.payload.get("model") == model:
        return request.body, request.payload
    payload = request.payload | {"model": model}
    return json.dumps(payload).encode(), payload


def _is_about_the_model(body: bytes) -> bool:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return False
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return False
    return error.get("param") == "model" or error.get("code") == "model_not_found"


async def _again(body: bytes) -> AsyncIterator[bytes]:
    yield body
