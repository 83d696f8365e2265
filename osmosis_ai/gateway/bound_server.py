"""A server that takes so many connections at once, and closes every other one at once."""

import asyncio
import logging
from typing import Any

from aiohttp import web

_log = logging.getLogger(__name__)

_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: application/json\r\n"
    b"Content-Length: 83\r\n\r\n"
    b'{"error": {"message": "too many open connections", "code": "too_many_connections"}}'
)


class BoundServer(web.Server):
    """aiohttp's server with at most ``max_connections`` open (``None``: any number).

    One agent's connections would otherwise take the descriptors that its neighbours need.
    """

    def __init__(self, handler: Any, max_connections: int | None, **options: Any) -> None:
        super().__init__(handler, **options)
        self._max_connections = max_connections
        self._has_told = False

    def __call__(self) -> Any:
        """Make what serves the next connection."""
        if self._max_connections is None or len(self.connections) < self._max_connections:
            return super().__call__()
        if not self._has_told:
            self._has_told = True
            _log.warning(
                "A rollout has %d connections open to its model, and gets no more: is something "
                "in its sandbox opening them without end? (GatewayLimits.max_connections)",
                self._max_connections,
            )
        return _Full()


class _Full(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(_FULL)
        transport.close()
