"""A model server that says which tokens it sampled, in vLLM's shape, streamed or not."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class Turn:
    """What the model says in one call: pieces of text, or of a tool call, with their ids."""

    prompt_ids: list[int]
    pieces: list[tuple[str, list[int]]]
    tool: str | None = None
    flaw: str | None = None

    @property
    def ids(self) -> list[int]:
        return [token for _, ids in self.pieces for token in ids]

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.pieces)


@dataclass
class TokenServer:
    """Plays the turns in order and keeps what it was asked."""

    url: str = ""
    turns: list[Turn] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)


def logprob_of(token: int) -> float:
    return -((token % 97) + 0.25) / 10


def _logprobs(ids: list[int]) -> dict[str, Any]:
    return {
        "content": [
            {"token": f"t{token}", "logprob": logprob_of(token), "bytes": None, "top_logprobs": []}
            for token in ids
        ]
    }


def _said(turn: Turn, text: str, *, first: bool) -> dict[str, Any]:
    if turn.tool is None:
        return {"content": text}
    function = {"arguments": text} | ({"name": turn.tool} if first else {})
    head = {"id": "call_1", "type": "function"} if first else {}
    return {"tool_calls": [{"index": 0, **head, "function": function}]}


def _choice(body: dict[str, Any], ids: list[int], fields: dict[str, Any]) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": None, **fields}
    if body.get("logprobs") is True:
        choice["logprobs"] = _logprobs(ids)
    if body.get("return_token_ids") is True:
        choice["token_ids"] = ids
    return choice


def _usage(turn: Turn) -> dict[str, Any]:
    spoken = len(turn.ids) + (1 if turn.flaw == "miscounted" else 0)
    asked = len(turn.prompt_ids)
    return {"prompt_tokens": asked, "completion_tokens": spoken, "total_tokens": asked + spoken}


def _whole(body: dict[str, Any], turn: Turn) -> web.Response:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if turn.tool is None:
        message["content"] = turn.text
    else:
        function = {"name": turn.tool, "arguments": turn.text}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    choice = _choice(body, turn.ids, {"message": message, "finish_reason": "stop"})
    answer: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    answer |= {"choices": [choice], "usage": _usage(turn)}
    if body.get("return_token_ids") is True and turn.flaw != "no prompt ids":
        answer["prompt_token_ids"] = turn.prompt_ids
    if turn.flaw == "bad ids":
        choice["token_ids"] = ["one"]
    if turn.flaw == "ids missing":
        del choice["token_ids"]
    if turn.flaw == "two choices":
        answer["choices"].append(choice | {"index": 1})
    return web.json_response(answer)


async def _streamed(request: web.Request, body: dict[str, Any], turn: Turn) -> web.StreamResponse:
    stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await stream.prepare(request)

    async def send(choices: list[dict[str, Any]], **fields: Any) -> None:
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        await stream.write(
            f"data: {json.dumps({**head, 'choices': choices, **fields})}\n\n".encode()
        )

    first: dict[str, Any] = {}
    if body.get("return_token_ids") is True and turn.flaw != "no prompt ids":
        first["prompt_token_ids"] = turn.prompt_ids
    role = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    await send([role], **first)
    for index, (text, ids) in enumerate(turn.pieces):
        choice = _choice(body, ids, {"delta": _said(turn, text, first=index == 0)})
        if index == len(turn.pieces) - 1 and turn.flaw == "ids missing":
            del choice["token_ids"]
        if turn.flaw == "bad ids":
            choice["token_ids"] = [-1]
        if turn.flaw == "dies" and index == len(turn.pieces) - 1:
            assert request.transport is not None
            request.transport.abort()
            return stream
        await send([choice])
        if turn.flaw == "two choices":
            await send([choice | {"index": 1}])
    await send([{"index": 0, "delta": {}, "finish_reason": "stop", "logprobs": None}])
    if (body.get("stream_options") or {}).get("include_usage"):
        await send([], usage=_usage(turn))
    await stream.write(b"data: [DONE]\n\n")
    return stream


@asynccontextmanager
async def token_server() -> AsyncIterator[TokenServer]:
    server = TokenServer()

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        server.asked.append(body)
        turn = server.turns.pop(0)
        return await _streamed(request, body, turn) if body.get("stream") else _whole(body, turn)

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()
