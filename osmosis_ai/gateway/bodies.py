"""Reading bodies within bounds."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from osmosis_ai.common.json_bounds import check_json_bounds
from osmosis_ai.gateway.errors import ApiError, UpstreamError, bad_request
from osmosis_ai.gateway.limits import GatewayLimits

_PARSED_AT_ONCE = 256 * 1024
"""A larger document is counted before it is parsed, and neither happens in the event loop."""


class HeldBodies:
    """The bodies of one rollout's calls in flight."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held = 0

    @contextmanager
    def holding(self) -> Iterator[Callable[[int], None]]:
        """Yield what counts bytes of one body, which are given back at the block's end.

        The function raises ``ApiError``: 429, all together are more than may be held.
        """
        mine = 0

        def count(size: int) -> None:
            nonlocal mine
            if self._held + size > self._max_bytes:
                raise _too_many(self._max_bytes)
            self._held += size
            mine += size

        try:
            yield count
        finally:
            self._held -= mine


async def read_request(
    request: web.BaseRequest, limits: GatewayLimits, count: Callable[[int], None]
) -> bytes:
    """Read the agent's body; ``count`` is told of every part.

    Raises:
        ApiError: 413, it is larger than one may be; 415, it is compressed, so that its
            size is not known; 408, it takes too long; whatever ``count`` raises.
    """
    if (request.content_length or 0) > limits.max_request_bytes:
        raise _too_large(limits.max_request_bytes)
    if request.headers.get("Content-Encoding", "identity").lower() not in {"", "identity"}:
        raise _compressed(request.headers["Content-Encoding"])
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    body = bytearray()
    try:
        async with asyncio.timeout(limits.max_body_sec):
            async for chunk in request.content.iter_any():
                count(len(chunk))
                body += chunk
                if len(body) > limits.max_request_bytes:
                    raise _too_large(limits.max_request_bytes)
    except TimeoutError:
        raise _too_slow(limits.max_body_sec) from None
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


async def parse_request(body: bytes) -> dict[str, Any]:
    """Parse the agent's JSON object.

    Raises:
        ApiError: 400, it is not JSON, not an object, or of more values than are read.
    """
    try:
        if len(body) <= _PARSED_AT_ONCE:
            payload = _parsed(body)
        else:
            payload = await asyncio.to_thread(_counted, body)
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


def _counted(body: bytes) -> Any:
    check_json_bounds(body, max_bytes=len(body))
    return _parsed(body)


def _parsed(body: bytes) -> Any:
    return json.loads(body, parse_constant=_no_constant)


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


def _too_many(max_bytes: int) -> ApiError:
    return ApiError(
        429,
        f"the rollout's calls in flight hold {max_bytes} bytes of request bodies, and no more are "
        "taken (GatewayLimits.max_held_bytes)",
        kind="rate_limit_error",
        code="too_many_bytes",
        retry=True,
        limit="max_held_bytes",
    )


def _too_slow(seconds: float) -> ApiError:
    return ApiError(
        408,
        f"the request body did not arrive within {seconds} s (GatewayLimits.max_body_sec)",
        kind="invalid_request_error",
        code="request_too_slow",
        retry=False,
        limit="max_body_sec",
    )


def _compressed(encoding: str) -> ApiError:
    return ApiError(
        415,
        f"the request body is compressed ({encoding[:40]!r}); send it as it is",
        kind="invalid_request_error",
        code="request_compressed",
        retry=False,
    )
