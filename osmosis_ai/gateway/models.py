"""The list of models, as the upstream gives it."""

from aiohttp import web

from osmosis_ai.gateway.bodies import read_reply
from osmosis_ai.gateway.endpoint import Endpoint
from osmosis_ai.gateway.errors import rollout_closed
from osmosis_ai.gateway.headers import request_headers
from osmosis_ai.gateway.lifetime import Lifetime
from osmosis_ai.gateway.replies import passed_reply
from osmosis_ai.gateway.upstreams.base import UpstreamCall


async def list_models(
    request: web.BaseRequest, endpoint: Endpoint, lifetime: Lifetime
) -> web.StreamResponse:
    """Pass on ``GET /models``. It is no model call, so it is neither limited nor recorded."""
    call = UpstreamCall(
        method="GET",
        resource="models",
        query=request.rel_url.raw_query_string,
        headers=request_headers(request.headers.items()),
    )
    with lifetime.until_closed():
        async with endpoint.upstream.send(call) as reply:
            body = await read_reply(reply.body, endpoint.limits.max_response_bytes)
        text = endpoint.hide(body.decode("utf-8", errors="replace"))
        return passed_reply(reply, text.encode(), endpoint.hide)
    raise rollout_closed(endpoint.rollout_id)
