"""A small real model server whose behaviour is chosen by the model's name."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

KEY = "sk-real-key-of-the-upstream"
USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 3,
    "total_tokens": 14,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}

type Answer = Callable[["ModelServer", web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]


@dataclass
class ModelServer:
    """What the server saw, and its address."""

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    abandoned: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)


def completion(model: str, text: str = "one two three") -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "made_up_field": {"kept": True}}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    head = {"id": "c1", "object": "chat.completion", "created": 1, "model": f"served-{model}"}
    return head | {"choices": [choice], "usage": USAGE}


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "served-model"}
    return f"data: {json.dumps(head | {'choices': [choice]})}\n\n".encode()


async def begin_stream(request: web.Request) -> web.StreamResponse:
    stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await stream.prepare(request)
    await stream.write(chunk({"role": "assistant", "content": ""}))
    return stream


async def wait_or_note(server: ModelServer) -> None:
    """Wait to be let go on, and note when the caller leaves meanwhile."""
    try:
        await server.go_on.wait()
    except asyncio.CancelledError:
        server.abandoned.set()
        raise


async def plain(server: ModelServer, request: web.Request, body: dict[str, Any]) -> web.Response:
    return web.json_response(
        completion(body["model"]), headers={"x-request-id": "r1", "set-cookie": "a=b"}
    )


async def slow_stream(
    server: ModelServer, request: web.Request, body: dict[str, Any]
) -> web.StreamResponse:
    stream = await begin_stream(request)
    await stream.write(chunk({"content": "one"}))
    await wait_or_note(server)
    # An event may arrive in pieces, and two may arrive in one.
    rest = chunk({"content": " two"}) + chunk({}, "stop")
    await stream.write(rest[:20])
    await asyncio.sleep(0.02)
    await stream.write(rest[20:])
    if body.get("stream_options", {}).get("include_usage"):
        usage = {"id": "c1", "model": "served-model", "choices": [], "usage": USAGE}
        await stream.write(f"data: {json.dumps(usage)}\n\n".encode())
    await stream.write(b"data: [DONE]\n\n")
    return stream


async def dies(
    server: ModelServer, request: web.Request, body: dict[str, Any]
) -> web.StreamResponse:
    stream = await begin_stream(request)
    await stream.write(chunk({"content": "one"}))
    await stream.write(b'data: {"id": "c1", "cho')
    assert request.transport is not None
    request.transport.abort()
    return stream


async def ends_early(
    server: ModelServer, request: web.Request, body: dict[str, Any]
) -> web.StreamResponse:
    stream = await begin_stream(request)
    await stream.write(chunk({"content": "one"}))
    return stream


async def garbage_event(
    server: ModelServer, request: web.Request, body: dict[str, Any]
) -> web.StreamResponse:
    stream = await begin_stream(request)
    await stream.write(b"data: <html>\n\n")
    await wait_or_note(server)
    return stream


async def lingers(
    server: ModelServer, request: web.Request, body: dict[str, Any]
) -> web.StreamResponse:
    stream = await begin_stream(request)
    await stream.write(chunk({}, "stop") + b"data: [DONE]\n\n")
    await wait_or_note(server)
    return stream


async def busy_once(
    server: ModelServer, request: web.Request, body: dict[str, Any]
) -> web.StreamResponse:
    if len(server.bodies) == 1:
        error = {"error": {"message": "slow down", "type": "rate_limit", "code": None}}
        return web.json_response(error, status=429, headers={"Retry-After": "0"})
    return await plain(server, request, body)


async def busy(server: ModelServer, request: web.Request, body: dict[str, Any]) -> web.Response:
    return web.json_response({"error": "overloaded"}, status=503, headers={"Retry-After": "0"})


async def busy_for_long(
    server: ModelServer, request: web.Request, body: dict[str, Any]
) -> web.Response:
    return web.json_response({"error": "come back"}, status=429, headers={"Retry-After": "3600"})


async def fails(server: ModelServer, request: web.Request, body: dict[str, Any]) -> web.Response:
    error = {"error": {"message": f"bad key {KEY}", "type": "server_error", "code": "boom"}}
    return web.json_response(error, status=500)


async def tells(
    server: ModelServer, request: web.Request, body: dict[str, Any]
) -> web.StreamResponse:
    """Says the key and its own address wherever it can."""
    text = f"key {KEY} at {server.url} on {request.host}, {request.url.host}"
    error = {"error": {"message": text, "type": "server_error", "code": "boom"}}
    headers = {"x-told": text, "location": server.url}
    if body.get("stream"):
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"} | headers)
        await stream.prepare(request)
        await stream.write(chunk({"content": KEY}) + f"data: {json.dumps(error)}\n\n".encode())
        return stream
    return web.json_response(error, status=body["status"], headers=headers)


async def garbage(server: ModelServer, request: web.Request, body: dict[str, Any]) -> web.Response:
    return web.Response(text="<html>hello</html>", content_type="text/html")


async def elsewhere(
    server: ModelServer, request: web.Request, body: dict[str, Any]
) -> web.Response:
    raise web.HTTPTemporaryRedirect("http://127.0.0.1:1/v1/chat/completions")


async def hangs(server: ModelServer, request: web.Request, body: dict[str, Any]) -> web.Response:
    await wait_or_note(server)
    return await plain(server, request, body)


async def invalid_utf8(
    server: ModelServer, request: web.Request, body: dict[str, Any]
) -> web.StreamResponse:
    if not body.get("stream"):
        raw = json.dumps(completion("m", "caf\u00e9"), ensure_ascii=False).encode("latin-1")
        return web.Response(body=raw, content_type="application/json")
    stream = await begin_stream(request)
    await stream.write(chunk({"content": "one"}))
    await stream.write(b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n')
    await wait_or_note(server)
    return stream


async def endless(
    server: ModelServer, request: web.Request, body: dict[str, Any]
) -> web.StreamResponse:
    stream = await begin_stream(request)
    try:
        while True:
            await stream.write(chunk({"content": "more "}) + b": still here\n\n")
            await asyncio.sleep(0.005)
    except (ConnectionError, asyncio.CancelledError):
        server.abandoned.set()
        raise


async def error_with_200(
    server: ModelServer, request: web.Request, body: dict[str, Any]
) -> web.StreamResponse:
    error = {"error": {"message": "out of memory", "type": "server_error", "code": 500}}
    if not body.get("stream"):
        return web.json_response(error)
    stream = await begin_stream(request)
    await stream.write(f"data: {json.dumps(error)}\n\ndata: [DONE]\n\n".encode())
    return stream


ANSWERS: dict[str, Answer] = {
    "busy": busy,
    "busy-for-long": busy_for_long,
    "busy-once": busy_once,
    "dies": dies,
    "elsewhere": elsewhere,
    "endless": endless,
    "ends-early": ends_early,
    "error-with-200": error_with_200,
    "fails": fails,
    "garbage": garbage,
    "garbage-event": garbage_event,
    "gpt-4o": plain,
    "hangs": hangs,
    "invalid-utf8": invalid_utf8,
    "lingers": lingers,
    "plain": plain,
    "slow-stream": slow_stream,
    "tells": tells,
}


@asynccontextmanager
async def model_server() -> AsyncIterator[ModelServer]:
    server = ModelServer()

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        server.bodies.append(body)
        server.headers.append(dict(request.headers))
        server.queries.append(request.query_string)
        server.arrived.set()
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.json_response({"error": {"message": "who are you"}}, status=401)
        return await ANSWERS[body["model"]](server, request, body)

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "plain", "object": "model"}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()
