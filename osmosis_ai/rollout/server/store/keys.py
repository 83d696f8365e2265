"""What makes lease tokens and seals credentials, so that neither is stored in clear."""

import hmac
import json
import os
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from osmosis_ai.rollout.server.store.errors import StoreError

STORE_KEY_ENV = "OSMOSIS_STORE_KEY"

NOT_KEPT = (
    "its credentials were in the memory of a server that has ended, because that server had no "
    f"key to seal them with: set {STORE_KEY_ENV} (or an API key) to keep them over restarts"
)
NOT_OPENED = (
    f"its sealed credentials cannot be opened: {STORE_KEY_ENV} (or the API key that stands in "
    "for it) is not the one they were sealed with"
)
_UNSEALED = b""
"""Stands for credentials that there were and that nothing could seal."""


class CredentialsLostError(Exception):
    """Credentials that a rollout had cannot be had any more; the text says why."""


class StoreKeys:
    """Everything that follows from the store's key.

    ``secret`` makes tokens and fingerprints. Credentials are sealed with it only
    when ``seals``: a secret that lies beside the database would protect nothing.
    """

    def __init__(self, secret: bytes, *, seals: bool) -> None:
        self._tokens = _derive(secret, b"osmosis lease tokens")
        self._fernet: Fernet | None = None
        if seals:
            sealing = _derive(secret, b"osmosis sealed credentials")
            self._fernet = Fernet(urlsafe_b64encode(sealing))

    @classmethod
    def from_text(cls, key: str) -> "StoreKeys":
        """Keys from a text that every server of the store knows."""
        return cls(key.encode(), seals=True)

    @classmethod
    def beside(cls, database: Path) -> "StoreKeys":
        """Keys for development without any: a random secret in a file of mode 0600."""
        return cls(_secret_file(database.with_name(f"{database.name}.secret")), seals=False)

    def token(self, nonce: bytes) -> str:
        """The lease token that belongs to ``nonce``: 32 bytes, URL-safe base64, no padding."""
        return urlsafe_b64encode(self.keyed_digest(nonce)).rstrip(b"=").decode()

    def keyed_digest(self, data: bytes) -> bytes:
        """A digest from which nobody without the key can guess ``data``."""
        return hmac.digest(self._tokens, data, "sha256")

    @property
    def seals(self) -> bool:
        """Whether credentials can be kept over a restart."""
        return self._fernet is not None

    def seal(self, credentials: Mapping[str, str]) -> bytes | None:
        """What to store for credentials; ``None`` when there are none."""
        if not credentials:
            return None
        if self._fernet is None:
            return _UNSEALED
        return self._fernet.encrypt(json.dumps(dict(credentials)).encode())

    def unseal(self, sealed: bytes | None) -> dict[str, str]:
        """The credentials again.

        Raises:
            CredentialsLostError: they were not kept, or the key is another.
        """
        if sealed is None:
            return {}
        if sealed == _UNSEALED:
            raise CredentialsLostError(NOT_KEPT)
        if self._fernet is None:
            raise CredentialsLostError(NOT_OPENED)
        try:
            opened: dict[str, str] = json.loads(self._fernet.decrypt(sealed))
        except InvalidToken as exc:
            raise CredentialsLostError(NOT_OPENED) from exc
        return opened


def _derive(secret: bytes, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(secret)


def _secret_file(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_hex(32).encode())
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):
            os.link(made, path)  # appears whole, and only once
    finally:
        made.unlink(missing_ok=True)
    secret = path.read_bytes().strip()
    if len(secret) < 32:
        raise StoreError(f"{path} does not hold the store's secret; remove it to make a new one")
    return secret
