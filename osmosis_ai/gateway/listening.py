"""aiohttp's server with bounds: connections are counted, heads are waited for so long."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from osmosis_ai.gateway.connections import ConnectionBudget, Connections, refusal
from osmosis_ai.gateway.oncelog import OnceLog

_HEAD_SEC = 30.0
"""For the head of a request on a new connection."""
_KEEPALIVE_SEC = 75.0

type Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class BoundedServer(web.Server):
    """Serves connections of one owner within a budget.

    Bodies are passed as they came: what is compressed is nowhere inflated.
    """

    def __init__(
        self, handler: Handler, owner: Connections, budget: ConnectionBudget, log: OnceLog
    ) -> None:
        # An agent that leaves cancels its handler, and with it the call upstream.
        super().__init__(handler, handler_cancellation=True)
        self._owner = owner
        self._budget = budget
        self._log = log

    def __call__(self) -> web.RequestHandler:
        """A connection's protocol."""
        return Connection(self, self._owner, self._budget, self._log, asyncio.get_running_loop())


class Connection(web.RequestHandler):
    """One connection, and whose it is."""

    __slots__ = ("_budget", "_head_timer", "_owner", "_refused")

    def __init__(
        self,
        server: BoundedServer,
        owner: Connections,
        budget: ConnectionBudget,
        log: OnceLog,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        options: dict[str, Any] = {"access_log": None, "auto_decompress": False, "logger": log}
        super().__init__(server, loop=loop, keepalive_timeout=_KEEPALIVE_SEC, **options)
        self._owner = owner
        self._budget = budget
        self._refused = False
        self._head_timer: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether no call is being served on it."""
        return self._current_request is None and not self._messages

    def claim(self, owner: Connections) -> bool:
        """Count it as that owner's from now on; returns whether there was room."""
        if owner is self._owner:
            return True
        self._budget.discard(self._owner, self)
        self._owner = owner
        return self._budget.add(owner, self)

    def end(self) -> None:
        """Close it."""
        self.force_close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.Protocol``."""
        if not self._budget.add(self._owner, self):
            self._refused = True
            assert isinstance(transport, asyncio.Transport)
            transport.write(
                refusal(
                    "too_many_connections",
                    "too many connections to the model at once; end some, or wait for some to end "
                    f"(GatewayLimits.max_connections is {self._owner.limit})",
                )
            )
            transport.close()
            return
        super().connection_made(transport)
        self._head_timer = self._loop.call_later(_HEAD_SEC, self._end_without_head)

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``."""
        if not self._refused:
            super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """See ``asyncio.Protocol``."""
        if self._refused:
            return
        self._budget.discard(self._owner, self)
        if self._head_timer is not None:
            self._head_timer.cancel()
        super().connection_lost(exc)

    def _end_without_head(self) -> None:
        if self._request_count == 0:
            self.force_close()
