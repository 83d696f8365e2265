"""Keys never reach a record or an error text, and a sandbox never hears where its model is."""

import json
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlsplit

from osmosis_ai.common.urls import without_secrets

REDACTED = "[REDACTED]"
MODEL_SERVER = "[MODEL SERVER]"
_SHORTEST_SECRET = 8
"""Replacing anything shorter would mangle innocent text; such keys are placeholders."""
_SHORTEST_ADDRESS = 4


class Redactor:
    """Replaces known secrets in text, also in the form they have inside JSON.

    ``addresses`` are where the upstream is: hidden from sandboxes, known to operators.
    """

    def __init__(self, secrets: Iterable[str | None], addresses: Iterable[str] = ()) -> None:
        known = {
            address: MODEL_SERVER for address in addresses if len(address) >= _SHORTEST_ADDRESS
        } | {secret: REDACTED for secret in secrets if secret and len(secret) >= _SHORTEST_SECRET}
        escaped = {json.dumps(text)[1:-1]: mark for text, mark in known.items()}
        slashed = {text.replace("/", r"\/"): mark for text, mark in escaped.items()}
        every = known | escaped | slashed
        self._marks = sorted(every.items(), key=lambda item: len(item[0]), reverse=True)
        self._bytes = [text.encode("utf-8", "surrogateescape") for text, _ in self._marks]

    def __call__(self, text: str) -> str:
        for known, mark in self._marks:
            text = text.replace(known, mark)
        return text

    def finds(self, data: bytes) -> bool:
        """Whether something in ``data`` would be replaced."""
        return any(known in data for known in self._bytes)


def upstream_addresses(upstream: str | None) -> list[str]:
    """What names the server behind an upstream: its URL, host and port, and host."""
    shown = without_secrets(upstream or "")
    if shown.startswith("litellm/"):
        shown = dict(parse_qsl(shown.partition("?")[2])).get("api_base", "")
    try:
        parts = urlsplit(shown)
        host, port = parts.hostname, parts.port
    except ValueError:
        return []
    if parts.scheme not in {"http", "https"} or not host:
        return []
    place = parts.netloc.rpartition("@")[2]
    base = f"{parts.scheme}://{place}{parts.path.rstrip('/')}"
    told = {place, host, base} | ({f"{host}:{port}"} if port else set())
    return sorted(told)
