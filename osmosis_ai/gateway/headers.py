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

_RESPONSE_ONLY = frozenset(
    {
        "set-cookie",
        "server",
        "date",
        "alt-svc",
        "www-authenticate",
        "location",
        "content-location",
        "via",
    }
)
"""About the upstream's connection; the agent's sandbox has no business with them."""


_NOT_UP = _HOP_BY_HOP | _FRAMING | _REQUEST_ONLY
_NOT_DOWN = _HOP_BY_HOP | _FRAMING | _RESPONSE_ONLY


def request_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """What of the agent's headers the upstream may see."""
    return _without(headers, _NOT_UP)


def response_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """What of the upstream's headers the agent may see."""
    return _without(headers, _NOT_DOWN)


def _without(headers: Iterable[tuple[str, str]], dropped: frozenset[str]) -> Headers:
    kept: Headers = []
    nominated: set[str] = set()
    for name, value in headers:
        lower = name.lower()
        if lower not in dropped:
            kept.append((name, value))
        elif lower == "connection":
            nominated.update(token.strip().lower() for token in value.split(","))
    if nominated.isdisjoint(name.lower() for name, _ in kept):
        return kept
    return [(name, value) for name, value in kept if name.lower() not in nominated]
