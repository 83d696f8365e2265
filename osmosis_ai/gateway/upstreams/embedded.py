"""A deterministic policy of this package as the upstream."""

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import anyio
from pydantic import ValidationError

from osmosis_ai.gateway.embedded import Policy, make_policy
from osmosis_ai.gateway.embedded.chat import ChatRequest
from osmosis_ai.gateway.embedded.wire import completion, completion_events
from osmosis_ai.gateway.errors import bad_request, not_found
from osmosis_ai.gateway.upstreams.base import UpstreamCall, UpstreamReply

PREFIX = "embedded/"


class EmbeddedUpstream:
    """Answers calls from a policy, byte for byte in the shapes of OpenAI's API.

    Raises:
        ValueError: the policy is unknown, or one of its parameters is wrong.
    """

    def __init__(self, spec: str) -> None:
        name, _, parameters = spec.removeprefix(PREFIX).partition("?")
        self._policy: Policy = make_policy(name, parameters)
        self._model = f"{PREFIX}{name}"
        self.serves_responses: bool | None = False

    @asynccontextmanager
    async def send(self, call: UpstreamCall) -> AsyncIterator[UpstreamReply]:
        """See ``Upstream.send``."""
        match call.method, call.resource:
            case "GET", "models":
                model = {"id": self._model, "object": "model", "created": 0, "owned_by": "osmosis"}
                yield _json_reply({"object": "list", "data": [model]})
            case "POST", "chat/completions":
                yield await self._chat(call)
            case _:
                raise not_found(f"the embedded policy has no {call.method} {call.resource}")

    async def _chat(self, call: UpstreamCall) -> UpstreamReply:
        try:
            request = ChatRequest.model_validate(call.payload)
        except ValidationError as exc:
            raise bad_request(_first_problem(exc)) from exc
        await anyio.sleep(self._policy.latency_sec)
        answer = self._policy.answer(request)
        if not request.stream:
            return _json_reply(completion(request, answer, model=self._model))
        events = completion_events(request, answer, model=self._model)
        return UpstreamReply(200, [("content-type", "text/event-stream")], _stream(events))


def _json_reply(value: object) -> UpstreamReply:
    body = json.dumps(value).encode()
    return UpstreamReply(200, [("content-type", "application/json")], _stream([body]))


async def _stream(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
        # A real model lets others run between its tokens; so does this one.
        await anyio.lowlevel.checkpoint()


def _first_problem(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in problem["loc"]) or "body"
    return f"{where}: {problem['msg']}"
