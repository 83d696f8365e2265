"""Reading bodies within bounds."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
from aiohttp import web

from osmosis_ai.common.json_bounds import check_json_bounds
from osmosis_ai.gateway.errors import ApiError, UpstreamError, bad_request
from osmosis_ai.gateway.holding import Share
from osmosis_ai.gateway.limits import GatewayLimits

SMALL_BYTES = 64 * 1024
"""A body of this size is parsed where it is: a thread would take longer."""

_MAX_REPLY_ITEMS = 2_000_000
"""An answer may hold several numbers for each of its tokens."""


async def read_request(request: web.BaseRequest, limits: GatewayLimits, share: Share) -> bytes:
    """Read the agent's body, and hold it for the call.

    Raises:
        ApiError: 413, it is larger than the limits say; 415, it is compressed; 408, it
            does not arrive in time; 429, the rollout's calls hold too much.
    """
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise _compressed()
    if (request.content_length or 0) > limits.max_request_bytes:
        raise _too_large(limits.max_request_bytes)
    if request.content.is_eof():
        return await _read(request, limits.max_request_bytes, share)
    try:
        with anyio.fail_after(limits.request_read_sec):
            return await _read(request, limits.max_request_bytes, share)
    except TimeoutError as exc:
        raise _too_slow(limits.request_read_sec) from exc


async def _read(request: web.BaseRequest, max_bytes: int, share: Share) -> bytes:
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    body = bytearray()
    async for chunk in request.content.iter_any():
        if not share.take(len(chunk)):
            raise _holds_too_much(share)
        body += chunk
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
    return bytes(body)


async def read_reply(
    body: AsyncIterator[bytes], max_bytes: int, share: Share | None = None
) -> bytes:
    """Read an upstream's body, and hold it for the call.

    Raises:
        UpstreamError: it broke off, is larger than ``max_bytes``, or the rollout's
            calls hold too much.
    """
    answer = bytearray()
    async for chunk in body:
        if share is not None and not share.take(len(chunk)):
            raise UpstreamError(
                f"the bodies of this rollout's calls in flight pass {share.limit} bytes with this "
                "answer (GatewayLimits.max_held_bytes); make fewer calls at once",
                code="max_held_bytes_reached",
                limit="max_held_bytes",
            )
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
    """Parse the agent's JSON object; measures a body that is not small before.

    Raises:
        ApiError: 400, it is not JSON, not an object, or holds too much.
    """
    try:
        if len(body) > SMALL_BYTES:
            check_json_bounds(body, max_bytes=len(body))
        # Only UTF-8: brackets in any other encoding were not counted.
        payload = json.loads(body.decode("utf-8-sig"), parse_constant=_no_constant)
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
        UpstreamError: it is not JSON, not an object, or holds too much.
    """
    try:
        if len(body) > SMALL_BYTES:
            check_json_bounds(body, max_bytes=len(body), max_items=_MAX_REPLY_ITEMS)
        answer = json.loads(body.decode("utf-8-sig"))
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


def _compressed() -> ApiError:
    return ApiError(
        415,
        "the request body is compressed, which the gateway does not read: send it as it is, "
        "without Content-Encoding",
        kind="invalid_request_error",
        code="compressed_request",
        retry=False,
    )


def _too_slow(seconds: float) -> ApiError:
    return ApiError(
        408,
        f"the request body did not arrive within {seconds} s (GatewayLimits.request_read_sec)",
        kind="invalid_request_error",
        code="request_too_slow",
        retry=False,
        limit="request_read_sec",
    )


def _holds_too_much(share: Share) -> ApiError:
    return ApiError(
        429,
        f"the bodies of this rollout's calls in flight pass {share.limit} bytes with this one "
        "(GatewayLimits.max_held_bytes); make fewer calls at once",
        kind="rate_limit_error",
        code="max_held_bytes_reached",
        retry=True,
        limit="max_held_bytes",
    )


def _too_large(max_bytes: int) -> ApiError:
    return ApiError(
        413,
        f"the request body is larger than {max_bytes} bytes (GatewayLimits.max_request_bytes)",
        kind="invalid_request_error",
        code="request_too_large",
        retry=False,
        limit="max_request_bytes",
    )
