"""A policy over real HTTP that answers from a script, streamed when it is asked to.

A reply is an assistant message, or ``{"error": …}`` for a refusal with status 400.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

USAGE = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}


@dataclass
class Script:
    """Where the policy answers, what it says next, and the requests that it got."""

    replies: list[dict[str, Any]]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)

    @property
    def wire(self) -> list[list[dict[str, Any]]]:
        """The messages of each request."""
        return [request["messages"] for request in self.requests]


def says(text: str, **fields: Any) -> dict[str, Any]:
    """An assistant message of text."""
    return {"role": "assistant", "content": text, **fields}


def calls(name: str, call_id: str = "call_1", **arguments: Any) -> dict[str, Any]:
    """An assistant message that calls one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


@asynccontextmanager
async def serve_script(*replies: dict[str, Any]) -> AsyncIterator[Script]:
    """Serve on a free port of the loopback until the block ends; then all must be said."""
    script = Script(list(replies))

    async def complete(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        script.requests.append(body)
        if not script.replies:
            return web.json_response({"error": {"message": "script is over"}}, status=400)
        message = script.replies.pop(0)
        if "error" in message:
            return web.json_response(message, status=400)
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        if body.get("stream"):
            return await _stream(request, body, message, reason)
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return web.json_response({**_envelope("chat.completion", [choice]), "usage": USAGE})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        script.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield script
        assert not script.replies, "the policy was asked less often than the script is long"
    finally:
        await runner.cleanup()


async def _stream(
    request: web.Request, body: dict[str, Any], message: dict[str, Any], reason: str
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        head = {**function, "arguments": function["arguments"][:4]}
        deltas.append({"tool_calls": [{**call, "index": index, "function": head}]})
        tail = {"arguments": function["arguments"][4:]}
        deltas.append({"tool_calls": [{"index": index, "function": tail}]})
    deltas += [{"content": letter} for letter in message.get("content") or ""]
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": delta, "finish_reason": None} for delta in deltas
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    for choice in choices:
        await _send(response, _envelope("chat.completion.chunk", [choice]))
    if (body.get("stream_options") or {}).get("include_usage"):
        await _send(response, {**_envelope("chat.completion.chunk", []), "usage": USAGE})
    await response.write(b"data: [DONE]\n\n")
    return response


async def _send(response: web.StreamResponse, event: dict[str, Any]) -> None:
    await response.write(f"data: {json.dumps(event)}\n\n".encode())


def _envelope(kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": "c", "object": kind, "created": 1, "model": "scripted", "choices": choices}
