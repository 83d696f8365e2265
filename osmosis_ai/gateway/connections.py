"""How many connections callers may hold: a rollout its share, all together what the process has."""

import json
import resource
from collections.abc import Callable
from typing import Any, Protocol

_FEWEST = 64
_PER_CONNECTION = 4
"""Descriptors of the process for one connection: its own, its upstream's, and as many for the
engine, the files and the sandboxes of its rollout."""


class Held(Protocol):
    """A connection as the budget sees it."""

    @property
    def idle(self) -> bool:
        """Whether no call is being served on it."""
        ...

    def end(self) -> None:
        """Close it."""
        ...


def descriptor_share() -> int:
    """How many connections this process can bear, by its limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_FEWEST, (65_536 if soft == resource.RLIM_INFINITY else soft) // _PER_CONNECTION)


class Connections:
    """The connections of one owner, oldest first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held: dict[Held, None] = {}

    def __len__(self) -> int:
        return len(self._held)

    def add(self, connection: Held) -> bool:
        """Take one in, in place of the oldest idle one where the limit is reached.

        Returns whether there was room.
        """
        if len(self._held) >= self.limit and not self.end_idle():
            return False
        self._held[connection] = None
        return True

    def discard(self, connection: Held) -> None:
        """Forget one that ended."""
        self._held.pop(connection, None)

    def end_idle(self) -> bool:
        """End the oldest on which no call is served; returns whether there was one."""
        idle = next((connection for connection in self._held if connection.idle), None)
        if idle is None:
            return False
        self.discard(idle)
        idle.end()
        return True


class ConnectionBudget:
    """What all owners may hold together. Beyond it, who holds the most gives one up."""

    def __init__(self, share: Callable[[], int] = descriptor_share) -> None:
        self._share = share
        self._owners: dict[Connections, None] = {}

    def add(self, owner: Connections, connection: Held) -> bool:
        """Take a connection of ``owner`` in; returns whether there was room."""
        if len(owner) < owner.limit and self._count() >= self._share() and not self._make_room():
            return False
        if not owner.add(connection):
            return False
        self._owners[owner] = None
        return True

    def discard(self, owner: Connections, connection: Held) -> None:
        """Forget one that ended."""
        owner.discard(connection)
        if not len(owner):
            self._owners.pop(owner, None)

    def _count(self) -> int:
        return sum(len(owner) for owner in self._owners)

    def _make_room(self) -> bool:
        most = sorted(self._owners, key=len, reverse=True)
        return any(owner.end_idle() for owner in most)


def refusal(code: str, message: str) -> bytes:
    """A whole HTTP answer for a connection that is not served."""
    body: dict[str, Any] = {"error": {"message": message, "type": "rate_limit_error", "code": code}}
    text = json.dumps(body).encode()
    head = (
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(text)}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + text
