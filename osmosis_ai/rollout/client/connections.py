"""Connections for thousands of long polls.

httpx's pool looks through all its connections at every request, so what one
poll costs grows with the number of polls: two thousand that end together keep a
processor busy for most of a minute. Here every request in flight has a pool of
its own, with one connection, used again afterwards.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import cast

import httpx

_KEPT_IDLE = 100
_KEEPALIVE_SEC = 2.0
"""Shorter than what servers allow (uvicorn: 5 s). A request sent on a connection that its server is
just closing is lost, and a lost admission cannot be repeated everywhere."""


class ConnectionPerRequest(httpx.AsyncBaseTransport):
    """Sends each request in flight on a connection of its own; TLS as httpx does it by default."""

    def __init__(self) -> None:
        self._context = httpx.create_ssl_context()
        self._idle: list[httpx.AsyncHTTPTransport] = []
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request on a connection of its own."""
        single = self._idle.pop() if self._idle else self._single()
        try:
            response = await single.handle_async_request(request)
        except BaseException:
            await single.aclose()
            raise
        stream = cast("httpx.AsyncByteStream", response.stream)
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_ReleasingStream(stream, lambda: self._give_back(single)),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close what is idle; connections in use close with their answers."""
        self._closed = True
        while self._idle:
            await self._idle.pop().aclose()

    def _single(self) -> httpx.AsyncHTTPTransport:
        limits = httpx.Limits(max_connections=1, keepalive_expiry=_KEEPALIVE_SEC)
        return httpx.AsyncHTTPTransport(verify=self._context, limits=limits)

    async def _give_back(self, single: httpx.AsyncHTTPTransport) -> None:
        if self._closed or len(self._idle) >= _KEPT_IDLE:
            await single.aclose()
        else:
            self._idle.append(single)


class _ReleasingStream(httpx.AsyncByteStream):
    """An answer's body whose connection is free when it is closed."""

    def __init__(
        self, stream: httpx.AsyncByteStream, give_back: Callable[[], Awaitable[None]]
    ) -> None:
        self._stream = stream
        self._give_back: Callable[[], Awaitable[None]] | None = give_back

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            give_back, self._give_back = self._give_back, None
            if give_back is not None:
                await give_back()
