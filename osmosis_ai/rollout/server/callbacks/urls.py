"""Which URLs the server calls back, and what of them may be logged."""

import httpx

from osmosis_ai.common.addresses import reached_addresses

_LONGEST = 8192

_METADATA = frozenset({"100.100.100.200", "fd00:ec2::254", "fd20:ce::254", "255.255.255.255"})
"""Where clouds keep credentials outside the link-local networks, and the broadcast address."""


def checked_callback_url(url: str, field: str = "completion_callback_url") -> str:
    """Return a URL that a callback may be posted to.

    Raises:
        ValueError: it is not http or https with a host, holds a user or a
            password, or names an address that no trainer listens on
            (link-local and others where clouds keep credentials; multicast;
            unspecified), in any form that a resolver reads as one.
            The text names ``field`` and never holds the URL, whose query may be
            secret.
    """
    if len(url) > _LONGEST:
        raise ValueError(f"{field} is longer than {_LONGEST} characters")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"{field} must be printable ASCII without blanks; escape the rest")
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as exc:
        raise ValueError(f"{field} is not a URL: {exc}") from exc
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise ValueError(f"{field} must begin with http:// or https:// and a host")
    if parsed.userinfo:
        raise ValueError(f"{field} must not hold a user or password; use controller_api_key")
    if _is_closed(parsed.host):
        raise ValueError(f"{field} names an address that is not a trainer's: {parsed.host}")
    return url


def origin(url: str) -> str:
    """Scheme, host and port: what is logged of a callback's URL, and what its limits go by."""
    parsed = httpx.URL(url)
    port = f":{parsed.port}" if parsed.port is not None else ""
    host = f"[{parsed.host}]" if ":" in parsed.host else parsed.host
    return f"{parsed.scheme}://{host}{port}"


def _is_closed(host: str) -> bool:
    return any(
        address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or str(address) in _METADATA
        for address in reached_addresses(host)
    )
