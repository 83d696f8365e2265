"""The model endpoint of one rollout."""

import logging
import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from pathlib import Path

import anyio

from osmosis_ai.common.model_calls import CallRecord, Kind
from osmosis_ai.common.urls import url_secrets
from osmosis_ai.gateway.capture import Capture
from osmosis_ai.gateway.connections import Connections
from osmosis_ai.gateway.holding import Holding
from osmosis_ai.gateway.journal import Journal
from osmosis_ai.gateway.ledger import Ledger
from osmosis_ai.gateway.lifetime import Lifetime
from osmosis_ai.gateway.limits import GatewayLimits
from osmosis_ai.gateway.oncelog import OnceLog
from osmosis_ai.gateway.records import EndpointSummary
from osmosis_ai.gateway.redaction import Redactor, upstream_addresses
from osmosis_ai.gateway.upstreams.base import Upstream

_log = logging.getLogger(__name__)

_FLUSH_SEC = 30.0
"""How long a disk may take; the gateway's own end waits for what is left."""

type UnixListener = Callable[["Endpoint", Path], AbstractAsyncContextManager[None]]


class Endpoint:
    """One rollout's way to its model. Made by ``Gateway.open`` and dead after its block.

    Attributes:
        rollout_id: whose endpoint this is.
        kind: ``policy`` for the agent's calls, ``judge`` for a grader's.
        url: OpenAI-style base URL; clients append ``/chat/completions``.
        local_url: the same for callers in this process, where ``url`` is advertised.
        token: bearer for ``url``, random, valid for this rollout only.
        redact: takes keys out of a text; ``hide`` the upstream's address too, for the sandbox.
        connections, holding: what its callers hold at present.
        parsing: one large body of the rollout is parsed at a time.
        log: says once what this rollout's callers can repeat.
    """

    def __init__(
        self,
        rollout_id: str,
        url: str,
        *,
        local_url: str,
        kind: Kind,
        upstream: Upstream,
        upstream_url: str | None,
        api_key: str | None,
        model: str | None,
        limits: GatewayLimits,
        capture: Capture,
        journal: Journal | None,
        listen_unix: UnixListener,
        observe: Callable[[CallRecord], None] | None = None,
    ) -> None:
        self.rollout_id = rollout_id
        self.kind: Kind = kind
        self.url = url
        self.local_url = local_url
        self.token = secrets.token_urlsafe(32)
        self.token_digest = token_digest(self.token)
        self.upstream = upstream
        self.model = model
        self.limits = limits
        self.capture = capture
        known = [api_key, self.token, *url_secrets(upstream_url or "").secrets]
        self.redact = Redactor(known)
        self.hide = Redactor(known, upstream_addresses(upstream_url))
        self.ledger = Ledger(limits, self.redact, journal, observe)
        self.connections = Connections(limits.max_connections)
        self.holding = Holding(limits.max_held_bytes)
        self.parsing = anyio.CapacityLimiter(1)
        self.log = OnceLog(_log)
        self._listen_unix = listen_unix
        self.lifetime = Lifetime(rollout_id)

    def __repr__(self) -> str:
        return f"<Endpoint {self.url}{' closed' if self.lifetime.closed else ''}>"

    @property
    def calls(self) -> list[CallRecord]:
        """The latest calls, oldest first, at most ``GatewayLimits.max_calls_in_memory``."""
        return self.ledger.records

    def summary(self) -> EndpointSummary:
        """Totals over all calls so far; complete once the endpoint is closed."""
        return self.ledger.summary

    def listen_unix(self, path: Path) -> AbstractAsyncContextManager[None]:
        """Serve this endpoint alone on a unix socket while the block runs.

        The socket has mode 0666 and asks for no token: who can reach it is the rollout.
        Over it the base URL's path is ``/v1``. The directory must exist.

        Raises:
            ValueError: the path is too long for a socket, or something is there already.
            OSError: the socket cannot be made.
        """
        return self._listen_unix(self, path)

    async def close(self) -> None:
        """Refuse new calls, end those in flight, and wait until all are recorded on disk."""
        await self.lifetime.close()
        with anyio.move_on_after(_FLUSH_SEC, shield=True):
            await self.ledger.flush()


def token_digest(token: str) -> bytes:
    """What tokens are compared by, so that no comparison tells how much of one was right."""
    return sha256(token.encode("utf-8", errors="surrogateescape")).digest()
