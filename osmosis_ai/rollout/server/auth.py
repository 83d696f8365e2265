"""Who may ask: the server's own key, and the token of each rollout's lease."""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class LeaseTokens:
    """Makes lease tokens that need not be kept.

    A token follows from a nonce and a secret of this process, so an admission
    that is asked for again gets the same one although only its digest is held.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def make(self, nonce: bytes) -> str:
        """The token that belongs to ``nonce``: 32 bytes, URL-safe base64 without padding."""
        return urlsafe_b64encode(self.keyed_digest(nonce)).rstrip(b"=").decode()

    def keyed_digest(self, data: bytes) -> bytes:
        """A digest from which nobody without the secret can guess ``data``."""
        return hmac.digest(self._secret, data, "sha256")


def token_digest(token: str) -> bytes:
    """What is kept of a token: SHA-256."""
    return hashlib.sha256(token.encode("utf-8", errors="surrogatepass")).digest()


class RequireApiKey:
    """ASGI middleware: every request needs ``Authorization: Bearer <api_key>``, else 401.

    Raises:
        ValueError: the key is blank.
    """

    def __init__(self, app: ASGIApp, *, api_key: str) -> None:
        self._app = app
        self._expected = f"Bearer {checked_api_key(api_key)}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is allowed."""
        if scope["type"] == "http" and not self._allows(scope):
            answer = JSONResponse(
                {"detail": "unauthorized"}, 401, headers={"WWW-Authenticate": "Bearer"}
            )
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _allows(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._expected)


def checked_api_key(api_key: str) -> str:
    """Return a key that a header can carry.

    Raises:
        ValueError: it is blank, or not printable ASCII.
    """
    if not api_key.strip() or not api_key.isascii() or not api_key.isprintable():
        raise ValueError(
            "api_key must be printable ASCII and not blank (its value is not shown); pass None "
            "to serve without a key"
        )
    return api_key
