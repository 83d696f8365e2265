"""An answer in the shapes of OpenAI's chat-completions API, streamed and not."""

import re
import time
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from osmosis_ai.gateway.embedded.base import Answer, ToolCall
from osmosis_ai.gateway.embedded.chat import ChatRequest
from osmosis_ai.gateway.sse import DONE, encode_event

_ARGUMENTS_PIECE = 8


def completion(request: ChatRequest, answer: Answer, *, model: str) -> dict[str, Any]:
    """The whole answer as one object."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.tool_call:
        message["tool_calls"] = [_tool_call(answer.tool_call)]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _finish_reason(answer),
    }
    head = _head(request, answer, model, "chat.completion")
    return head | {"choices": [choice], "usage": usage(request, answer)}


def completion_events(request: ChatRequest, answer: Answer, *, model: str) -> Iterator[bytes]:
    """The answer as server-sent events, up to and including the end mark."""
    head = _head(request, answer, model, "chat.completion.chunk")
    wants_usage = bool(request.stream_options and request.stream_options.include_usage)
    extra: dict[str, Any] = {"usage": None} if wants_usage else {}

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return encode_event(head | {"choices": [choice]} | extra)

    yield chunk({"role": "assistant", "content": None if answer.tool_call else ""})
    for piece in re.findall(r"\s*\S+|\s+$", answer.text):
        yield chunk({"content": piece})
    if answer.tool_call:
        for delta in _tool_call_deltas(answer.tool_call):
            yield chunk({"tool_calls": [delta]})
    yield chunk({}, _finish_reason(answer))
    if wants_usage:
        yield encode_event(head | {"choices": [], "usage": usage(request, answer)})
    yield f"data: {DONE}\n\n".encode()


def usage(request: ChatRequest, answer: Answer) -> dict[str, Any]:
    """Token counts. A token here is a word between spaces: policies have no tokenizer."""
    prompt = sum(_words(turn.text) for turn in request.messages)
    spoken = answer.text
    if answer.tool_call:
        spoken = f"{answer.tool_call.name} {answer.tool_call.arguments}"
    completed = _words(spoken)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completed,
        "total_tokens": prompt + completed,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def _head(request: ChatRequest, answer: Answer, model: str, kind: str) -> dict[str, Any]:
    turns = "\0".join(turn.model_dump_json() for turn in request.messages)
    digest = sha256(f"{model}\0{turns}\0{answer}".encode("utf-8", errors="surrogatepass"))
    return {
        "id": f"chatcmpl-{digest.hexdigest()[:24]}",
        "object": kind,
        "created": int(time.time()),
        "model": model,
    }


def _finish_reason(answer: Answer) -> str:
    return "tool_calls" if answer.tool_call else "stop"


def _tool_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _tool_call_deltas(call: ToolCall) -> Iterator[dict[str, Any]]:
    function = {"name": call.name, "arguments": ""}
    yield {"index": 0, "id": call.id, "type": "function", "function": function}
    for start in range(0, len(call.arguments), _ARGUMENTS_PIECE):
        piece = call.arguments[start : start + _ARGUMENTS_PIECE]
        yield {"index": 0, "function": {"arguments": piece}}


def _words(text: str) -> int:
    return len(text.split())
