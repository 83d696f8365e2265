"""A policy over real HTTP: chat completions, streamed or not, one tool call then an answer."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 3},
}


@dataclass
class Policy:
    """Where the policy answers, and the requests that it got."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)


@asynccontextmanager
async def serve_policy() -> AsyncIterator[Policy]:
    """Serve on a free port of the loopback until the block ends."""
    policy = Policy()

    async def complete(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        policy.requests.append(body)
        policy.authorizations.append(request.headers.get("Authorization"))
        message = _decide(body)
        if body.get("stream"):
            return await _stream(request, message)
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(message)}
        return web.json_response(_envelope("chat.completion", [choice]) | {"usage": USAGE})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        policy.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield policy
    finally:
        await runner.cleanup()


def _decide(body: dict[str, Any]) -> dict[str, Any]:
    last = body["messages"][-1]
    tools = body.get("tools") or []
    if tools and last["role"] != "tool":
        function = {"name": tools[0]["function"]["name"], "arguments": '{"query": "ATIF"}'}
        call = {"id": f"call_{len(body['messages'])}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"role": "assistant", "content": f"answer to {last['role']}", "tool_calls": None}


def _finish_reason(message: dict[str, Any]) -> str:
    return "tool_calls" if message["tool_calls"] else "stop"


def _envelope(kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": "c", "object": kind, "created": 1, "model": "policy", "choices": choices}


async def _stream(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    for call in message["tool_calls"] or []:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        start = call | {"index": 0, "function": {"name": name, "arguments": arguments[:5]}}
        deltas.append({"tool_calls": [start]})
        deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": arguments[5:]}}]})
    deltas += [{"content": piece} for piece in (message["content"] or "").split(" ") if piece]
    for delta in deltas:
        if "content" in delta and delta is not deltas[-1]:
            delta["content"] += " "
        await _send(response, [{"index": 0, "delta": delta, "finish_reason": None}])
    await _send(response, [{"index": 0, "delta": {}, "finish_reason": _finish_reason(message)}])
    await _send(response, [], usage=USAGE)
    await response.write(b"data: [DONE]\n\n")
    return response


async def _send(response: web.StreamResponse, choices: list[dict[str, Any]], **fields: Any) -> None:
    chunk = _envelope("chat.completion.chunk", choices) | fields
    await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
