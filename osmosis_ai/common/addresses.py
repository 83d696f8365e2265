"""Hosts and base URLs, as they are written and as they are compared."""

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether a host is this machine's own: ``localhost``, or a loopback address of IPv4 or IPv6.

    An IPv4 address within an IPv6 one (``::ffff:127.0.0.1``) is judged as what it is.
    """
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def netloc(host: str, port: int) -> str:
    """Return ``host:port`` as it stands in a URL; wildcard hosts become their loopback."""
    host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def checked_base_url(url: str, name: str = "the URL") -> str:
    """Return a base URL without its trailing slash; ``name`` is what errors call it.

    Raises:
        ValueError: it is not an http(s) URL with a host, or has a user, a query or a fragment.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{name} must begin with http:// or https:// and a host, got {url!r}")
    if parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f"{name} {url!r} must hold no user, query or fragment")
    return url.rstrip("/")
