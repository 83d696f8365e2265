"""Who may ask: who has one of the server's two keys, or is on this machine."""

import hashlib
import hmac
from enum import IntEnum
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from osmosis_ai.common.addresses import is_loopback
from osmosis_ai.rollout.server.limits import is_long


class Access(IntEnum):
    """How much a key opens."""

    NOTHING = 0
    READ = 1
    CONTROL = 2


class RequireAccess:
    """ASGI middleware: who shows the key goes on, everybody else gets 401.

    ``read_api_key`` opens what only reads; other requests with it get 403.
    Without an ``api_key`` only this machine is served, and no page of another site that a
    browser on it shows.
    """

    def __init__(self, app: ASGIApp, *, api_key: str | None, read_api_key: str | None) -> None:
        self._app = app
        self._control = None if api_key is None else f"Bearer {api_key}".encode()
        self._read = None if read_api_key is None else f"Bearer {read_api_key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is allowed."""
        if scope["type"] == "http":
            refusal = self._local_refusal(scope) if self._control is None else self._refusal(scope)
            if refusal is not None:
                if is_long(scope):
                    # Who may not ask must not keep this process busy with what follows either.
                    refusal.headers["Connection"] = "close"
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        access = self._access(scope)
        if access is Access.NOTHING:
            return JSONResponse(
                {"detail": "unauthorized"}, 401, headers={"WWW-Authenticate": "Bearer"}
            )
        if access is Access.READ and scope["method"] not in {"GET", "HEAD"}:
            return JSONResponse({"detail": "this key only reads; use the control key"}, 403)
        return None

    def _access(self, scope: Scope) -> Access:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return Access.NOTHING
        # Both are compared, so that the time tells nothing about either.
        controls = self._control is not None and hmac.compare_digest(given[0], self._control)
        reads = self._read is not None and hmac.compare_digest(given[0], self._read)
        return Access.CONTROL if controls else Access.READ if reads else Access.NOTHING

    def _local_refusal(self, scope: Scope) -> JSONResponse | None:
        peer = scope.get("client")
        if peer is not None and peer[0] and not is_loopback(peer[0]):
            return JSONResponse(
                {"detail": "this server has no API key, and so serves its own machine only"}, 403
            )
        for name, value in scope["headers"]:
            if name == b"origin" and not is_loopback(_host_of(value)):
                return JSONResponse({"detail": "pages of other sites are not served"}, 403)
        return None


def token_digest(token: str) -> bytes:
    """What is kept of a token: SHA-256."""
    return hashlib.sha256(token.encode("utf-8", errors="surrogatepass")).digest()


def checked_api_key(api_key: str, name: str = "api_key") -> str:
    """Return a key that a header can carry.

    Raises:
        ValueError: it is blank, or not printable ASCII.
    """
    if not api_key.strip() or not api_key.isascii() or not api_key.isprintable():
        raise ValueError(
            f"{name} must be printable ASCII and not blank (its value is not shown); pass None "
            "to serve without a key"
        )
    return api_key


def _host_of(origin: bytes) -> str:
    try:
        return urlsplit(origin.decode("latin-1")).hostname or ""
    except ValueError:
        return ""
