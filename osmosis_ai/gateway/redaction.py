"""Keys never reach a record or an error text."""

import json
from collections.abc import Iterable

REDACTED = "[REDACTED]"
_SHORTEST_SECRET = 8
"""Replacing anything shorter would mangle innocent text; such keys are placeholders."""


class Redactor:
    """Replaces known secrets in text, also in the form they have inside JSON."""

    def __init__(self, secrets: Iterable[str | None]) -> None:
        known = {secret for secret in secrets if secret and len(secret) >= _SHORTEST_SECRET}
        escaped = {json.dumps(secret)[1:-1] for secret in known}
        self._secrets = sorted(known | escaped, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text
