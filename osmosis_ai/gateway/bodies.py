"""Reading bodies within bounds."""

import json
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from osmosis_ai.gateway.errors import ApiError, UpstreamError, bad_request


async def read_request(request: web.BaseRequest, max_bytes: int) -> bytes:
    """Read the agent's body.

    Raises:
        ApiError: 413, it is larger than ``max_bytes``.
    """
    if (request.content_length or 0) > max_bytes:
        raise _too_large(max_bytes)
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
    return bytes(body)


async def read_reply(body: AsyncIterator[bytes], max_bytes: int) -> bytes:
    """Read an upstream's body.

    Raises:
        UpstreamError: it broke off, or is larger than ``max_bytes``.
    """
    answer = bytearray()
    async for chunk in body:
        answer += chunk
        if len(answer) > max_bytes:
            raise UpstreamError(
                f"the upstream's answer is larger than {max_bytes} bytes "
                "(GatewayLimits.max_response_bytes)",
                code="upstream_too_large",
                retry=False,
                limit="max_response_bytes",
            )
    return bytes(answer)


def parse_request(body: bytes) -> dict[str, Any]:
    """Parse the agent's JSON object.

    Raises:
        ApiError: 400, it is not JSON, or not an object.
    """
    try:
        payload = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as exc:
        raise bad_request(f"the request body is not valid JSON: {exc}", code="bad_json") from exc
    if not isinstance(payload, dict):
        raise bad_request(
            f"the request body must be a JSON object, got {type(payload).__name__}",
            code="bad_json",
        )
    return payload


def parse_reply(body: bytes) -> dict[str, Any]:
    """Parse an upstream's JSON object.

    Raises:
        UpstreamError: it is not JSON, or not an object.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        head = body[:200].decode("utf-8", errors="replace")
        raise UpstreamError(
            f"the upstream answered with success, but not with a JSON object: {head!r}",
            code="upstream_garbage",
        )
    return answer


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _too_large(max_bytes: int) -> ApiError:
    return ApiError(
        413,
        f"the request body is larger than {max_bytes} bytes (GatewayLimits.max_request_bytes)",
        kind="invalid_request_error",
        code="request_too_large",
        retry=False,
        limit="max_request_bytes",
    )
