"""Which URLs the server calls back, and what of them may be logged."""

import ipaddress

import httpx

_LONGEST = 8192


def checked_callback_url(url: str, field: str = "completion_callback_url") -> str:
    """Return a URL that a callback may be posted to.

    Raises:
        ValueError: it is not http or https with a host, holds a user or a
            password, or names an address that no trainer listens on
            (link-local, where clouds keep credentials; multicast; unspecified).
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
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = mapped or address
    return address.is_link_local or address.is_multicast or address.is_unspecified
