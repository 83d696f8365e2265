"""Which URLs a remote sandbox can reach the gateway at, and where the gateway listens for them."""

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from osmosis_ai.common.addresses import checked_base_url

_THIS_MACHINE = frozenset(
    {
        "localhost",
        "host.docker.internal",
        "gateway.docker.internal",
        "host.containers.internal",
        "ip6-localhost",
        "ip6-loopback",
    }
)
_PRIVATE_SUFFIXES = (".local", ".svc", ".internal", ".lan", ".home.arpa")
_REMEDY = (
    "use the name of a Kubernetes service (http://engine.default.svc.cluster.local:8900) or a "
    "public https:// address that leads to this process"
)


@dataclass(frozen=True)
class Reach:
    """Where remote sandboxes find the gateway (``base_url``), and where it listens."""

    base_url: str
    host: str
    port: int


def reach_of(agent_base_url: str, agent_bind: str | None) -> Reach:
    """Check an advertised URL and say where the gateway has to listen for it.

    ``agent_bind`` is ``host:port``; by default the gateway listens on every
    address, on the port of the URL.

    Raises:
        ValueError: the URL cannot work from another machine, sends tokens in
            clear text over a public network, or leaves the port open.
    """
    base = checked_agent_url(agent_base_url)
    if agent_bind is not None:
        host, colon, port = agent_bind.rpartition(":")
        if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"agent_bind={agent_bind!r} must be 'host:port', as in '0.0.0.0:8900'")
        return Reach(base, host.strip("[]") or "0.0.0.0", int(port))
    port_in_url = urlsplit(base).port
    if port_in_url is None:
        raise ValueError(
            f"agent_base_url={agent_base_url!r} has no port: pass agent_bind='0.0.0.0:PORT' with "
            "the port of this process that the service or ingress behind it forwards to"
        )
    return Reach(base, "0.0.0.0", port_in_url)


def checked_agent_url(url: str) -> str:
    """Return an ``agent_base_url`` without its trailing slash.

    Raises:
        ValueError: see ``reach_of``.
    """
    try:
        base = checked_base_url(url)
        parts = urlsplit(base)
        _ = parts.port
    except ValueError as exc:
        raise ValueError(f"agent_base_url={url!r}: {exc}") from exc
    if not reaches_out(base):
        raise ValueError(
            f"agent_base_url={url!r} means this machine, and inside a remote sandbox the sandbox "
            f"itself: {_REMEDY}"
        )
    if parts.scheme == "http" and not _is_private(parts.hostname or ""):
        raise ValueError(
            f"agent_base_url={url!r} would send each rollout's token in clear text: use https://, "
            "or a name inside the cluster (ending in .svc.cluster.local, .svc or .internal)"
        )
    return base


def reaches_out(url: str) -> bool:
    """Whether a URL means the same from another machine as it does here."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    if not host or host in _THIS_MACHINE or host.endswith(".localhost"):
        return False
    address = _address(host)
    if address is None:
        return True
    mapped = getattr(address, "ipv4_mapped", None) or address
    return not (mapped.is_loopback or mapped.is_unspecified or mapped.is_link_local)


def _is_private(host: str) -> bool:
    address = _address(host)
    if address is not None:
        return address.is_private
    return "." not in host or host.rstrip(".").lower().endswith(_PRIVATE_SUFFIXES)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host spells, in any of the ways that resolvers understand."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))  # 127.1, 0x7f000001, 2130706433
    except OSError:
        return None
