"""Noticing a workflow that calls a provider directly, past the rollout's endpoint.

Such calls are in no record, so the rollout cannot be trained on. Connections
that Python code of this process opens are observed through audit events while a
rollout runs; those of subprocesses and of extensions that bring their own
sockets are not seen.
"""

import ipaddress
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from osmosis_ai.common.addresses import is_loopback
from osmosis_ai.rollout.context import RolloutContext

_MAX_NAMED = 5
_MAX_KEPT = 64
_DEFAULT_PORTS = {"http": 80, "https": 443}

_current: ContextVar["DirectCalls | None"] = ContextVar("direct_calls", default=None)
_active: set["DirectCalls"] = set()
_installed = False


@dataclass(eq=False)
class DirectCalls:
    """What one rollout's code connected to, as ``(host, port)``, each once.

    ``connections`` have numeric addresses, except where a client named the
    host; ``lookups`` are host names that the process resolved meanwhile, by
    port, and may be another rollout's.
    """

    endpoint: tuple[str, int]
    connections: dict[tuple[str, int], None] = field(default_factory=dict)
    lookups: dict[int, set[str]] = field(default_factory=dict)

    def reached_endpoint(self) -> bool:
        """Whether one of the connections may have been to the rollout's endpoint."""
        return any(self._may_be_endpoint(*address) for address in self.connections)

    def elsewhere(self) -> list[tuple[str, int]]:
        """The connections that were certainly not to the rollout's endpoint."""
        return [address for address in self.connections if not self._may_be_endpoint(*address)]

    def name(self, host: str, port: int) -> str:
        """Return ``host:port``, with the host's name where the process looked one up."""
        names = sorted(self.lookups.get(port, ())) if _is_numeric(host) else []
        found = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return f"{' or '.join(names)} ({found})" if names else found

    def _may_be_endpoint(self, host: str, port: int) -> bool:
        own, own_port = self.endpoint
        if port != own_port:
            return False
        if host == own or (is_loopback(host) and is_loopback(own)):
            return True
        return _is_numeric(host) and own in self.lookups.get(port, ())


@contextmanager
def watching_direct_calls(context: RolloutContext) -> Iterator[DirectCalls]:
    """Observe the connections of the code that the block runs, and of its tasks and threads.

    The first use installs an audit hook, which Python keeps for the life of the
    process; it costs well under a microsecond per audit event.
    """
    _install()
    watch = DirectCalls(_address(context.chat_completions_url))
    token = _current.set(watch)
    _active.add(watch)
    try:
        yield watch
    finally:
        _active.discard(watch)
        _current.reset(token)


def direct_call_warning(
    context: RolloutContext, watch: DirectCalls, gateway_calls: int | None = None
) -> str | None:
    """Return what to warn of, or ``None``.

    ``gateway_calls`` is how many calls the rollout's endpoint got; where that
    is unknown (inside a sandbox), a connection to the endpoint counts as one.
    Nothing is said of a rollout without an endpoint.
    """
    if not context.chat_completions_url:
        return None
    called = watch.reached_endpoint() if gateway_calls is None else gateway_calls > 0
    elsewhere = watch.elsewhere()
    if called or not elsewhere:
        return None
    named = ", ".join(watch.name(*address) for address in elsewhere[:_MAX_NAMED])
    more = f" and {len(elsewhere) - _MAX_NAMED} more" if len(elsewhere) > _MAX_NAMED else ""
    return (
        f"the workflow connected to {named}{more} and never called the rollout's model endpoint "
        f"{context.chat_completions_url}. A model called directly is in no record and is not the "
        "policy: use an integration, or the URL and key of get_rollout_context()"
    )


def _install() -> None:
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_observe)


def _observe(event: str, args: tuple[Any, ...]) -> None:
    # Called for every audit event of the process; an exception here would break the caller.
    if event == "socket.connect":
        watch = _current.get()
        if watch is not None and getattr(args[0], "type", None) == socket.SOCK_STREAM:
            _note_connection(watch, args[1])
    elif event == "http.client.connect":
        watch = _current.get()
        if watch is not None:
            _note_lookup(watch, args[1], args[2])
    elif event == "socket.getaddrinfo" and _active:
        # Event loops resolve names in threads that know nothing of the rollout.
        for watch in tuple(_active):
            _note_lookup(watch, args[0], args[1])


def _note_connection(watch: DirectCalls, address: Any) -> None:
    match address:
        case (str(host), int(port), *_) if len(watch.connections) < _MAX_KEPT:
            watch.connections[host, port] = None
        case _:
            pass  # a unix socket, or a family without ports


def _note_lookup(watch: DirectCalls, host: Any, port: Any) -> None:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    number = int(port) if isinstance(port, str) and port.isdecimal() else port
    if isinstance(name, str) and isinstance(number, int) and not _is_numeric(name):
        names = watch.lookups.setdefault(number, set())
        if len(names) < _MAX_KEPT:
            names.add(name)


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)


def _is_numeric(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
