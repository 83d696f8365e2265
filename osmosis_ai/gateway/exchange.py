"""One model call: from the agent's request to the last byte of its answer."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from aiohttp import web

from osmosis_ai.common.log_context import about_rollout
from osmosis_ai.common.model_calls import SERVICE_STATUSES
from osmosis_ai.gateway.bodies import (
    SMALL_BYTES,
    parse_reply,
    parse_request,
    read_reply,
    read_request,
)
from osmosis_ai.gateway.calls import OpenCall
from osmosis_ai.gateway.dialect import Dialect
from osmosis_ai.gateway.endpoint import Endpoint
from osmosis_ai.gateway.errors import ApiError, UpstreamError, rollout_closed
from osmosis_ai.gateway.headers import request_headers
from osmosis_ai.gateway.holding import Share
from osmosis_ai.gateway.lifetime import Lifetime
from osmosis_ai.gateway.negotiation import AgentRequest, dialects, lacks_resource
from osmosis_ai.gateway.recordfile import Body
from osmosis_ai.gateway.replies import error_reply, passed_headers, passed_reply
from osmosis_ai.gateway.sse import Event, EventReader
from osmosis_ai.gateway.tokens import TokenTrace
from osmosis_ai.gateway.upstreams.base import UpstreamCall, UpstreamReply

_FAREWELL_SEC = 1.0
_DRAIN_SEC = 0.25
"""How long an upstream may take to end its body after its last event, which keeps its
connection for the next call."""


async def model_call(
    request: web.BaseRequest, endpoint: Endpoint, lifetime: Lifetime, resource: str
) -> web.StreamResponse:
    """Serve one call of ``chat/completions`` or ``responses`` and record it, however it ends."""
    with (
        about_rollout(endpoint.rollout_id),
        endpoint.holding.call() as share,
        endpoint.ledger.call() as call,
    ):
        return await _Exchange(request, endpoint, lifetime, call, resource, share).run()


class _Exchange:
    def __init__(
        self,
        request: web.BaseRequest,
        endpoint: Endpoint,
        lifetime: Lifetime,
        call: OpenCall,
        resource: str,
        share: Share,
    ) -> None:
        self._request = request
        self._endpoint = endpoint
        self._lifetime = lifetime
        self._limits = endpoint.limits
        self._call = call
        self._resource = resource
        self._share = share
        self._stream: web.StreamResponse | None = None
        self._dialect: Dialect | None = None

    async def run(self) -> web.StreamResponse:
        try:
            with self._lifetime.until_closed(self._limits.max_call_sec):
                return await self._forward()
            failure = self._cut_off()
        except ApiError as error:
            failure = error
            self._call.upstream_failed = _is_upstreams(error)
        self._call.fail(failure.status, failure.message)
        self._endpoint.ledger.exceeded(failure)
        if self._stream is None or self._dialect is None:
            return error_reply(failure, self._endpoint.hide)
        return await self._break_off(self._stream, self._dialect, failure)

    def _cut_off(self) -> ApiError:
        if self._lifetime.closed:
            return rollout_closed(self._endpoint.rollout_id)
        return UpstreamError(
            f"the call took longer than {self._limits.max_call_sec} s (GatewayLimits.max_call_sec)",
            status=504,
            code="call_timeout",
            retry=False,
            limit="max_call_sec",
        )

    async def _forward(self) -> web.StreamResponse:
        self._endpoint.ledger.admit(self._call)
        body = await read_request(self._request, self._limits, self._share)
        is_large = len(body) > SMALL_BYTES
        payload = await self._aside(is_large, partial(parse_request, body))
        agent_request = AgentRequest(self._resource, body, payload)
        self._call.received(agent_request.body, agent_request.payload)
        ways = dialects(agent_request, self._endpoint)
        while (dialect := await self._aside(is_large, partial(next, ways, None))) is not None:
            self._speak(dialect)
            async with self._endpoint.upstream.send(self._upstream_call(dialect)) as reply:
                if dialect.api == "responses":
                    lacking, reply = await lacks_resource(reply, self._limits.max_response_bytes)
                    if lacking:
                        self._endpoint.upstream.serves_responses = False
                        continue
                if reply.status == 200 and reply.is_event_stream:
                    return await self._pass_stream(reply, dialect)
                return await self._pass_whole(reply, dialect)
        raise AssertionError("the last dialect is one that every upstream has")

    async def _aside[T](self, is_large: bool, work: Callable[[], T]) -> T:
        """Do it in a thread where the body is large, and one at a time of the rollout's."""
        if not is_large:
            return work()
        return await anyio.to_thread.run_sync(work, limiter=self._endpoint.parsing)

    def _speak(self, dialect: Dialect) -> None:
        """Record the call as one in this dialect."""
        capture = self._endpoint.capture
        self._dialect = dialect
        self._call.api = dialect.api
        self._call.answer = dialect.answer
        if dialect.api == "responses_as_chat":
            self._call.request = Body(dialect.request.body, dialect.request.payload)
        if dialect.api != "responses":
            self._call.tokens = TokenTrace(
                ids_asked=capture.token_ids,
                logprobs_asked=capture.logprobs,
                max_tokens=self._limits.max_record_tokens,
            )

    def _upstream_call(self, dialect: Dialect) -> UpstreamCall:
        return UpstreamCall(
            method="POST",
            resource=dialect.resource,
            query=self._request.rel_url.raw_query_string,
            headers=request_headers(self._request.headers.items()),
            body=dialect.request.body,
            payload=dialect.request.payload,
        )

    async def _pass_whole(self, reply: UpstreamReply, dialect: Dialect) -> web.StreamResponse:
        body = await read_reply(reply.body, self._limits.max_response_bytes, self._share)
        if reply.status >= 300:
            # Servers like to quote the key they did not accept.
            text = self._endpoint.redact(body.decode("utf-8", errors="replace"))
            self._call.response = Body(body, text)
            self._call.upstream_failed = reply.status in SERVICE_STATUSES
            self._call.fail(reply.status, f"the upstream answered {reply.status}: {text}")
            return passed_reply(reply, self._endpoint.hide(text).encode(), self._endpoint.hide)
        is_large = len(body) > SMALL_BYTES
        answer = await self._aside(is_large, partial(parse_reply, body))
        dialect.answer.take(answer)
        if self._call.tokens is not None:
            self._call.tokens.add(answer)
        shown = await self._aside(is_large, partial(dialect.whole, body, answer))
        # What was translated is recorded as the upstream said it.
        said = body if dialect.api == "responses_as_chat" else shown
        if said is not body:
            answer = await self._aside(is_large, partial(parse_reply, said))
        self._call.response = Body(said, answer)
        shown = self._hidden(shown, is_error=answer.get("error") is not None)
        return passed_reply(reply, shown, self._endpoint.hide)

    async def _pass_stream(self, reply: UpstreamReply, dialect: Dialect) -> web.StreamResponse:
        self._call.streamed = True
        stream = web.StreamResponse(status=200, headers=passed_headers(reply, self._endpoint.hide))
        self._stream = stream
        await stream.prepare(self._request)
        reader = EventReader(self._limits.max_response_bytes)
        chunks = aiter(reply.body)
        async for chunk in chunks:
            if await self._pass_events(stream, dialect, reader.feed(chunk)):
                break
        else:
            await self._pass_events(stream, dialect, reader.finish())
        answer = dialect.answer
        if answer.finish_reason is None and answer.error is None:
            raise UpstreamError(
                "the upstream's stream ended before the answer did", code="upstream_broke_off"
            )
        self._call.commit()
        if closing := dialect.closing():
            await stream.write(closing)
        await stream.write_eof()
        with anyio.move_on_after(_DRAIN_SEC), suppress(UpstreamError):
            async for _ in chunks:
                pass
        return stream

    async def _pass_events(
        self, stream: web.StreamResponse, dialect: Dialect, events: Iterator[Event]
    ) -> bool:
        """Pass on the events that came together; return whether the last one was among them."""
        pieces: list[bytes] = []
        failure: UpstreamError | None = None
        ended = False
        try:
            for event in events:
                pieces.append(self._taken(event, dialect))
                if ended := dialect.ends(event):
                    break
        except UpstreamError as exc:
            failure = exc
        answer = dialect.answer
        if ended and (answer.finish_reason is not None or answer.error is not None):
            # The agent may leave, or call again, the moment it sees the end mark.
            self._call.commit()
        if data := b"".join(pieces):
            await stream.write(data)
        if failure is not None:
            raise failure
        return ended

    def _taken(self, event: Event, dialect: Dialect) -> bytes:
        chunk = event.parsed()
        if chunk is not None:
            if dialect.answer.add(chunk):
                self._call.saw_content()
            if self._call.tokens is not None:
                self._call.tokens.add(chunk)
        is_error = chunk is not None and _says_error(chunk)
        return self._hidden(dialect.passed(event, chunk), is_error=is_error)

    def _hidden(self, shown: bytes, *, is_error: bool) -> bytes:
        """What the agent sees: never a key, and in an error not where the upstream is."""
        hide = self._endpoint.hide if is_error else self._endpoint.redact
        if not hide.finds(shown):
            return shown
        return hide(shown.decode("utf-8", errors="replace")).encode()

    async def _break_off(
        self, stream: web.StreamResponse, dialect: Dialect, failure: ApiError
    ) -> web.StreamResponse:
        """End a stream that has begun with an event that says why."""
        self._call.commit()
        stream.force_close()
        with anyio.move_on_after(_FAREWELL_SEC) as farewell, suppress(ConnectionError):
            await stream.prepare(self._request)
            await stream.write(dialect.broken(failure, self._endpoint.hide(failure.told)))
            await stream.write_eof()
        if farewell.cancelled_caught and self._request.transport is not None:
            # The agent does not read; only this ends the connection.
            self._request.transport.abort()
        return stream


def _is_upstreams(error: ApiError) -> bool:
    """Whether it is the upstream's fault, which limits on what an agent asks for are not."""
    return isinstance(error, UpstreamError) and error.limit in {None, "upstream_idle_sec"}


def _says_error(chunk: dict[str, Any]) -> bool:
    """Whether an event is about a failure, in chat completions or the Responses API."""
    return chunk.get("error") is not None or chunk.get("type") in {"error", "response.failed"}
