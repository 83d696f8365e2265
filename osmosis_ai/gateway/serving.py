"""Finds the endpoint that a request is for, checks that the caller may use it, and answers."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from osmosis_ai.gateway.addresses import Address, parse_tcp_path, parse_unix_path
from osmosis_ai.gateway.directory import Directory
from osmosis_ai.gateway.endpoint import Endpoint
from osmosis_ai.gateway.errors import ApiError, not_found
from osmosis_ai.gateway.exchange import model_call
from osmosis_ai.gateway.lifetime import Lifetime
from osmosis_ai.gateway.listening import Connection
from osmosis_ai.gateway.models import list_models
from osmosis_ai.gateway.oncelog import OnceLog
from osmosis_ai.gateway.replies import error_reply

_log = OnceLog(logging.getLogger(__name__))


@dataclass(frozen=True)
class _Target:
    """The endpoint that a call is for, the lifetime that ends it, and the resource it asks for."""

    endpoint: Endpoint
    lifetime: Lifetime
    resource: str


async def serve_tcp(directory: Directory, request: web.BaseRequest) -> web.StreamResponse:
    """Answer on the shared port, where the path names the rollout and its token opens it."""

    def find() -> _Target:
        address = _addressed(request, parse_tcp_path)
        authorization = request.headers.get("Authorization")
        endpoint = directory.authorize(address, authorization)
        connection = request.protocol
        if isinstance(connection, Connection) and not connection.claim(endpoint.connections):
            connection.close()
            raise _too_many(endpoint)
        return _Target(endpoint, endpoint.lifetime, address.resource)

    return await _serve(request, find)


async def serve_unix(
    endpoint: Endpoint, lifetime: Lifetime, request: web.BaseRequest
) -> web.StreamResponse:
    """Answer on a rollout's own socket, which is the proof of who asks."""

    def find() -> _Target:
        return _Target(endpoint, lifetime, _addressed(request, parse_unix_path).resource)

    return await _serve(request, find)


async def _serve(request: web.BaseRequest, find: Callable[[], _Target]) -> web.StreamResponse:
    target: _Target | None = None
    try:
        target = find()
        with target.lifetime.handling():
            match request.method, target.resource:
                case "POST", "chat/completions" | "responses":
                    return await model_call(
                        request, target.endpoint, target.lifetime, target.resource
                    )
                case "GET", "models":
                    return await list_models(request, target.endpoint, target.lifetime)
                case "GET", "ping":  # how a remote sandbox finds out that it reaches us
                    return web.json_response({"object": "gateway.pong"})
        raise not_found(
            f"the gateway has no {request.method} {target.resource!r}; "
            "it serves POST chat/completions, POST responses and GET models"
        )
    except ApiError as error:
        return error_reply(error, None if target is None else target.endpoint.hide)
    except ConnectionError:
        raise  # The agent left; aiohttp closes what remains.
    except Exception:
        log = _log if target is None else target.endpoint.log
        log.exception("a request to the gateway failed")
        if request.writer.output_size:
            raise  # An answer has begun; a second one would corrupt the connection.
        return error_reply(
            ApiError(
                500,
                "the gateway failed; its log says how",
                kind="server_error",
                code="gateway_failed",
            )
        )


def _too_many(endpoint: Endpoint) -> ApiError:
    return ApiError(
        503,
        f"rollout {endpoint.rollout_id!r} holds too many connections to the model at once "
        f"(GatewayLimits.max_connections is {endpoint.limits.max_connections})",
        kind="rate_limit_error",
        code="too_many_connections",
        retry=True,
        limit="max_connections",
    )


def _addressed(request: web.BaseRequest, parse: Callable[[str], Address | None]) -> Address:
    address = parse(request.rel_url.raw_path)
    if address is None:
        raise not_found(f"the gateway has nothing at {request.rel_url.raw_path!r}")
    return address
