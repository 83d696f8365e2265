"""What the gateway asks of an upstream for its records, beyond what the agent asked."""

import json
from dataclasses import dataclass
from typing import Any

_NOTHING: frozenset[str] = frozenset()

USAGE = "usage"
TOKEN_IDS = "token_ids"
PROMPT_TOKEN_IDS = "prompt_token_ids"
LOGPROBS = "logprobs"


@dataclass(frozen=True)
class Capture:
    """What to ask upstreams for. The agent never sees what it did not ask for itself.

    Attributes:
        usage: ask for the usage event of streamed chat completions
            (``stream_options.include_usage``). Turn it off for a server that refuses the
            field; streamed calls then count no tokens.
        token_ids: send ``return_token_ids``. vLLM then gives the ids of the prompt and
            of the completion, streamed or not; SGLang those of the completion, not
            streamed.
        prompt_token_ids: also send SGLang's ``return_prompt_token_ids``; vLLM needs no
            such field.
        logprobs: send ``logprobs: true``, for the log probability of each sampled token.
    """

    usage: bool = True
    token_ids: bool = False
    prompt_token_ids: bool = False
    logprobs: bool = False

    @property
    def needs_chat(self) -> bool:
        """Whether what is asked for exists in the chat-completions API only."""
        return self.token_ids or self.prompt_token_ids or self.logprobs


@dataclass(frozen=True)
class RequestBody:
    """What goes upstream, and what of the answer to it is for the record only (``hidden``)."""

    body: bytes
    payload: dict[str, Any]
    hidden: frozenset[str] = _NOTHING


def with_capture(body: bytes, payload: dict[str, Any], capture: Capture) -> RequestBody:
    """Add to a chat request what ``capture`` wants and the agent did not ask for."""
    added: dict[str, Any] = {}
    hidden: set[str] = set()
    if capture.usage and payload.get("stream") is True and not _asks_for_usage(payload):
        options = payload.get("stream_options")
        known = options if isinstance(options, dict) else {}
        added["stream_options"] = known | {"include_usage": True}
        hidden.add(USAGE)
    for wanted, field, name in (
        (capture.token_ids, "return_token_ids", TOKEN_IDS),
        (capture.prompt_token_ids, "return_prompt_token_ids", PROMPT_TOKEN_IDS),
        (capture.logprobs, "logprobs", LOGPROBS),
    ):
        if wanted and payload.get(field) is not True:
            added[field] = True
            hidden.add(name)
    if TOKEN_IDS in hidden and payload.get("return_prompt_token_ids") is not True:
        hidden.add(PROMPT_TOKEN_IDS)
    if not added:
        return RequestBody(body, payload)
    return RequestBody(_with(body, payload, added), payload | added, frozenset(hidden))


def _asks_for_usage(payload: dict[str, Any]) -> bool:
    options = payload.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _with(body: bytes, payload: dict[str, Any], added: dict[str, Any]) -> bytes:
    """The body with fields added; all else stays byte for byte where that is possible."""
    if not payload or not payload.keys().isdisjoint(added):
        return json.dumps(payload | added).encode()
    fields = json.dumps(added, separators=(",", ":"))[1:].encode()
    return body.rstrip()[:-1] + b"," + fields
