"""Hosts and base URLs, as they are written and as they are compared."""

import ipaddress
import socket
from urllib.parse import unquote, urlsplit

type Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_TRANSLATED = ipaddress.IPv6Network("::ffff:0:0:0/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine's own: ``localhost``, or a loopback address of IPv4 or IPv6.

    An IPv4 address within an IPv6 one (``::ffff:127.0.0.1``) is judged as what it is.
    """
    if host == "localhost":
        return True
    address = literal_address(host)
    return address is not None and address.is_loopback


def literal_address(host: str) -> Address | None:
    """The address that a host is, as ``getaddrinfo`` reads it; ``None`` for a name.

    IPv4 may be short, octal, hexadecimal or one number (``0x7f.1``), and a mapped
    IPv6 address is the IPv4 address in it. Brackets, a closing dot and
    percent-encoding change nothing.
    """
    text = unquote(host).removeprefix("[").removesuffix("]").rstrip(".")
    try:
        address: Address = ipaddress.ip_address(text)
    except ValueError:
        # inet_aton reads up to the first blank.
        if not text.isascii() or any(c.isspace() or c == "\0" for c in text):
            return None
        try:
            return ipaddress.IPv4Address(socket.inet_aton(text))
        except OSError:
            return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def reached_addresses(host: str) -> list[Address]:
    """The address that a host is, and every IPv4 address that a translator would make of it.

    Empty for a name. Known are NAT64, 6to4, Teredo, ISATAP, and the compatible and
    translated forms of IPv6.
    """
    address = literal_address(host)
    if not isinstance(address, ipaddress.IPv6Address):
        return [] if address is None else [address]
    number = int(address)
    found: list[Address] = [address]
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found += address.teredo
    tunnelled = (number >> 32) & 0xFFFF_FFFF in _ISATAP
    if tunnelled or any(address in network for network in (_NAT64, _COMPATIBLE, _TRANSLATED)):
        found.append(ipaddress.IPv4Address(number & 0xFFFF_FFFF))
    if address in _LOCAL_NAT64:
        found += _of_local_nat64(number)
    return found


def _of_local_nat64(number: int) -> list[Address]:
    """The IPv4 address under each length of prefix (RFC 6052, section 2.2) that fits in a /48."""
    high, low = number >> 64, number & (2**64 - 1)
    return [
        ipaddress.IPv4Address(value)
        for value in (
            ((high & 0xFFFF) << 16) | ((low >> 40) & 0xFFFF),  # /48
            ((high & 0xFF) << 24) | ((low >> 32) & 0xFF_FFFF),  # /56
            (low >> 24) & 0xFFFF_FFFF,  # /64
            low & 0xFFFF_FFFF,  # /96
        )
    ]


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
