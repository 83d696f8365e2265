"""A model server with a Responses API of its own, and one that lacks it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class ResponsesServer:
    """What was asked of which path."""

    url: str = ""
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    chunks: list[dict[str, Any]] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


def response(text: str = "native", **fields: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}
    usage = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 5},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 13,
    }
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "native-model"}
    settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    outcome = {"status": "completed", "output": [message | {"status": "completed"}], "usage": usage}
    return head | settings | outcome | fields


async def _native(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
    if body["model"] == "unknown":
        error = {"message": "no such model", "code": "model_not_found", "param": "model"}
        return web.json_response({"error": error}, status=404)
    if not body.get("stream"):
        return web.json_response(response())
    stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await stream.prepare(request)
    begun = response() | {"status": "in_progress", "output": [], "usage": None}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress"}
    part = {"type": "output_text", "text": "", "annotations": []}
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"content": []}},
        {"type": "response.content_part.added", **where, "part": part},
        {"type": "response.output_text.delta", **where, "delta": "native", "logprobs": []},
    ]
    if body["model"] == "breaks":
        events.append({"type": "error", "message": "out of memory", "code": "oom", "param": None})
    elif body["model"] == "stops":
        pass
    else:
        events.append({"type": "response.completed", "response": response()})
    for number, event in enumerate(events):
        data = json.dumps(event | {"sequence_number": number})
        await stream.write(f"event: {event['type']}\ndata: {data}\n\n".encode())
    return stream


@asynccontextmanager
async def responses_server(*, native: bool, missing: int = 404) -> AsyncIterator[ResponsesServer]:
    server = ResponsesServer()

    async def responses(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        server.asked.append(("responses", body))
        if not native:
            return web.json_response({"detail": "Not Found"}, status=missing)
        return await _native(request, body)

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        server.asked.append(("chat", body))
        if not body.get("stream"):
            return web.json_response(server.answers.pop(0))
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        for value in server.chunks:
            await stream.write(f"data: {json.dumps(value)}\n\n".encode())
        await stream.write(b"data: [DONE]\n\n")
        return stream

    app = web.Application()
    app.router.add_post("/v1/responses", responses)
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()
