"""Bounds on request bodies: how long, how slow, and how many at once."""

import asyncio
from collections.abc import Awaitable, Callable

from anyio import CapacityLimiter
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 8 * 2**20
BODY_SEC = 30.0
_SHORT_BYTES = 2**16
_AT_ONCE = 4
"""Requests with a body that go on in one turn of the event loop. The others wait, so that timers
and other requests come in between however many arrive together."""


class _TooLargeError(Exception):
    pass


class BoundBodies:
    """ASGI middleware: a body must come whole, in ``seconds`` (30) and ``max_bytes``.

    Too much is 413 as soon as it is known, too slow is 408.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int, seconds: float | None = None) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._seconds = BODY_SEC if seconds is None else seconds
        self._turns = CapacityLimiter(_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body and pass it on."""
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._read(scope, receive)
        except _TooLargeError:
            problem = f"the body is longer than {self._max_bytes} bytes"
            await self._refuse(413, problem, scope, receive, send)
            return
        except TimeoutError:
            problem = f"the body did not arrive within {self._seconds:g} s"
            await self._refuse(408, problem, scope, receive, send)
            return
        if body is not None:
            if body:
                async with self._turns:  # lets others go first, even with a place free
                    pass
            await self._app(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; ``None`` when the caller left."""
        if _announced(scope) > self._max_bytes:
            raise _TooLargeError
        chunks: list[bytes] = []
        length = 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            chunk = message.get("body", b"")
            length += len(chunk)
            if length > self._max_bytes:
                raise _TooLargeError
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)

    async def _refuse(
        self, status: int, detail: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        # The rest of the body is still to come: nothing else fits on this connection.
        answer = JSONResponse({"detail": detail}, status, headers={"Connection": "close"})
        await answer(scope, receive, send)


def is_long(scope: Scope) -> bool:
    """Whether the request's body is, or may be, longer than is read for nothing (64 KiB)."""
    chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
    return chunked or _announced(scope) > _SHORT_BYTES


def _has_body(scope: Scope) -> bool:
    return any(name in {b"content-length", b"transfer-encoding"} for name, _ in scope["headers"])


def _announced(scope: Scope) -> int:
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    # The web server has checked that it is a number; more digits than these are too many.
    return int(lengths[0][:18]) if lengths and lengths[0].isdigit() else 0


def _replay(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
