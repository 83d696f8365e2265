"""Answers to the agent that are not streams."""

import json

from aiohttp import web

from osmosis_ai.gateway.errors import ApiError
from osmosis_ai.gateway.headers import Headers
from osmosis_ai.gateway.redaction import Redactor
from osmosis_ai.gateway.upstreams.base import UpstreamReply


def error_reply(error: ApiError, redact: Redactor | None = None) -> web.Response:
    """An OpenAI-style error answer."""
    text = json.dumps(error.body())
    headers = {} if error.retry is None else {"x-should-retry": str(error.retry).lower()}
    return web.Response(
        status=error.status,
        text=redact(text) if redact else text,
        content_type="application/json",
        headers=headers,
    )


def passed_reply(reply: UpstreamReply, body: bytes, hide: Redactor) -> web.Response:
    """The upstream's own answer."""
    return web.Response(status=reply.status, headers=passed_headers(reply, hide), body=body)


def passed_headers(reply: UpstreamReply, hide: Redactor) -> Headers:
    """The headers of the upstream's own answer, without keys and its address."""
    return [(name, hide(value)) for name, value in reply.headers]
