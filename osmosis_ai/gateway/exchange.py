"""One chat completion: from the agent's request to the last byte of its answer."""

from contextlib import suppress
from dataclasses import replace

import anyio
from aiohttp import web

from osmosis_ai.gateway.answers import StreamedAnswer, error_text, objects
from osmosis_ai.gateway.bodies import parse_reply, parse_request, read_reply, read_request
from osmosis_ai.gateway.endpoint import Endpoint
from osmosis_ai.gateway.errors import ApiError, UpstreamError, rollout_closed
from osmosis_ai.gateway.headers import request_headers
from osmosis_ai.gateway.ledger import OpenCall
from osmosis_ai.gateway.lifetime import Lifetime
from osmosis_ai.gateway.metering import asking_for_usage, is_usage_event, must_ask_for_usage
from osmosis_ai.gateway.records import usage_of
from osmosis_ai.gateway.replies import error_reply, passed_reply
from osmosis_ai.gateway.sse import DONE, Event, EventReader, encode_event
from osmosis_ai.gateway.upstreams.base import UpstreamCall, UpstreamReply

_FAREWELL_SEC = 1.0


async def chat_completions(
    request: web.BaseRequest, endpoint: Endpoint, lifetime: Lifetime
) -> web.StreamResponse:
    """Serve one call and record it, however it ends."""
    with endpoint.ledger.call() as call:
        return await _Exchange(request, endpoint, lifetime, call).run()


class _Exchange:
    def __init__(
        self, request: web.BaseRequest, endpoint: Endpoint, lifetime: Lifetime, call: OpenCall
    ) -> None:
        self._request = request
        self._endpoint = endpoint
        self._lifetime = lifetime
        self._limits = endpoint.limits
        self._call = call
        self._answer = StreamedAnswer(endpoint.limits.max_record_bytes)
        self._stream: web.StreamResponse | None = None
        self._hide_usage = False

    async def run(self) -> web.StreamResponse:
        try:
            with self._lifetime.until_closed():
                return await self._forward()
            failure = rollout_closed(self._endpoint.rollout_id)
        except ApiError as error:
            failure = error
        self._call.fail(failure.status, failure.message)
        if self._stream is None:
            return error_reply(failure, self._endpoint.redact)
        return await self._break_off(self._stream, failure)

    async def _forward(self) -> web.StreamResponse:
        self._endpoint.ledger.admit(self._call)
        body = await read_request(self._request, self._limits.max_request_bytes)
        payload = parse_request(body)
        self._call.received(body, payload)
        upstream_call = UpstreamCall(
            method="POST",
            resource="chat/completions",
            query=self._request.rel_url.raw_query_string,
            headers=request_headers(self._request.headers.items()),
            body=body,
            payload=payload,
        )
        if self._limits.max_tokens is not None and must_ask_for_usage(payload):
            self._hide_usage = True
            asking = asking_for_usage(payload)
            upstream_call = replace(upstream_call, body=asking, payload=parse_request(asking))
        async with self._endpoint.upstream.send(upstream_call) as reply:
            if reply.status == 200 and reply.is_event_stream:
                return await self._pass_stream(reply)
            return await self._pass_whole(reply)

    async def _pass_whole(self, reply: UpstreamReply) -> web.StreamResponse:
        body = await read_reply(reply.body, self._limits.max_response_bytes)
        self._call.status = reply.status
        if reply.status >= 300:
            # Servers like to quote the key they did not accept.
            text = self._endpoint.redact(body.decode("utf-8", errors="replace"))
            self._call.response = self._call.kept(body, text)
            self._call.fail(reply.status, f"the upstream answered {reply.status}: {text}")
            return passed_reply(reply, text.encode())
        answer = parse_reply(body)
        self._call.response = self._call.kept(body, answer)
        self._call.usage = usage_of(answer)
        model = answer.get("model")
        self._call.model = model if isinstance(model, str) else None
        for choice in objects(answer.get("choices"))[:1]:
            reason = choice.get("finish_reason")
            self._call.finish_reason = reason if isinstance(reason, str) else None
        if error := answer.get("error"):
            self._call.fail(reply.status, error_text(error))
        return passed_reply(reply, body)

    async def _pass_stream(self, reply: UpstreamReply) -> web.StreamResponse:
        self._call.streamed = True
        stream = web.StreamResponse(status=200, headers=reply.headers)
        self._stream = stream
        await stream.prepare(self._request)
        try:
            reader = EventReader(self._limits.max_response_bytes)
            async for chunk in reply.body:
                for event in reader.feed(chunk):
                    await self._pass_event(stream, event)
            for event in reader.finish():
                await self._pass_event(stream, event)
        finally:
            self._note_stream()
        if self._answer.finish_reason is None and self._answer.error is None:
            raise UpstreamError(
                "the upstream's stream ended before the answer did", code="upstream_broke_off"
            )
        self._call.commit()
        await stream.write_eof()
        return stream

    async def _pass_event(self, stream: web.StreamResponse, event: Event) -> None:
        chunk = event.parsed()
        if chunk is not None and self._answer.add(chunk):
            self._call.saw_content()
        if event.data == DONE:
            # The agent may leave, or call again, the moment it sees the end mark.
            self._note_stream()
            if self._answer.finish_reason is not None or self._answer.error is not None:
                self._call.commit()
        if not (self._hide_usage and is_usage_event(chunk)):
            await stream.write(event.raw)

    def _note_stream(self) -> None:
        self._call.model = self._answer.model
        self._call.usage = self._answer.usage
        self._call.finish_reason = self._answer.finish_reason
        self._call.response = self._answer.body()
        if self._answer.error:
            self._call.fail(502, self._answer.error)

    async def _break_off(self, stream: web.StreamResponse, failure: ApiError) -> web.StreamResponse:
        """End a stream that has begun with an event that says why."""
        self._call.commit()
        stream.force_close()
        with anyio.move_on_after(_FAREWELL_SEC) as farewell, suppress(ConnectionError):
            await stream.prepare(self._request)
            body = failure.body()
            body["error"]["message"] = self._endpoint.redact(failure.message)
            await stream.write(encode_event(body, name="error"))
            await stream.write_eof()
        if farewell.cancelled_caught and self._request.transport is not None:
            # The agent does not read; only this ends the connection.
            self._request.transport.abort()
        return stream
