"""Which headers cross the gateway."""

from collections.abc import Iterable

type Headers = list[tuple[str, str]]

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""RFC 9110 section 7.6.1, and the two that proxies add by custom."""

_FRAMING = frozenset({"content-length", "content-encoding"})
"""Bodies are decoded here and framed again by whoever sends them on."""

_REQUEST_ONLY = frozenset(
    {"host", "expect", "accept-encoding", "authorization", "cookie", "api-key", "x-api-key"}
)
"""About this connection, or a credential: the agent's is a placeholder or our token."""

_RESPONSE_ONLY = frozenset({"set-cookie", "server", "date", "alt-svc", "www-authenticate"})
"""About the upstream's connection; the agent's sandbox has no business with them."""


def request_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """What of the agent's headers the upstream may see."""
    return _without(headers, _HOP_BY_HOP | _FRAMING | _REQUEST_ONLY)


def response_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """What of the upstream's headers the agent may see."""
    return _without(headers, _HOP_BY_HOP | _FRAMING | _RESPONSE_ONLY)


def _without(headers: Iterable[tuple[str, str]], dropped: frozenset[str]) -> Headers:
    pairs = list(headers)
    nominated = {
        token.strip().lower()
        for name, value in pairs
        if name.lower() == "connection"
        for token in value.split(",")
    }
    return [
        (name, value)
        for name, value in pairs
        if name.lower() not in dropped and name.lower() not in nominated
    ]
