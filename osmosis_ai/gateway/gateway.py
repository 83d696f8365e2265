"""The server, and the rollouts it serves."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Self

import anyio
from aiohttp import web

from osmosis_ai.common.addresses import checked_base_url, netloc
from osmosis_ai.common.model_calls import Kind
from osmosis_ai.gateway.addresses import (
    checked_rollout_id,
    endpoint_of_url,
    record_name,
    rollout_url,
)
from osmosis_ai.gateway.capture import Capture
from osmosis_ai.gateway.connections import ConnectionBudget, Connections, descriptor_share
from osmosis_ai.gateway.directory import Directory
from osmosis_ai.gateway.endpoint import Endpoint
from osmosis_ai.gateway.journal import Journal
from osmosis_ai.gateway.lifetime import Lifetime
from osmosis_ai.gateway.limits import GatewayLimits
from osmosis_ai.gateway.listening import BoundedServer
from osmosis_ai.gateway.observing import call_observer
from osmosis_ai.gateway.oncelog import OnceLog
from osmosis_ai.gateway.recordfile import RecordFile
from osmosis_ai.gateway.recordwriter import RecordWriter
from osmosis_ai.gateway.serving import serve_tcp, serve_unix
from osmosis_ai.gateway.unix_socket import MODE, checked_socket_path
from osmosis_ai.gateway.upstreams import Upstreams

_log = logging.getLogger(__name__)

_SHUTDOWN_SEC = 1.0


class Gateway:
    """A host-side server of rollout-scoped, OpenAI-compatible model endpoints.

    Use it as an async context manager, then ``open`` one endpoint per rollout.

    Args:
        host: address to bind; loopback unless remote sandboxes must reach it.
        port: 0 takes a free one.
        records_dir: where ``<rollout_id>.jsonl`` (a judge's: ``<rollout_id>.judge.jsonl``)
            is appended to, one line per call; made when missing. ``None`` writes nothing.
        limits: bounds for every endpoint that brings none of its own.
        capture: what to ask upstreams for, for every endpoint that does not say.
        advertise_url: base URL under which callers reach this server, when it is not
            the address bound: a tunnel, an ingress, the host's name in a cluster. It
            may hold a path; whatever serves it must pass on what comes below.

    Raises:
        ValueError: ``advertise_url`` is not an http(s) base URL.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        records_dir: Path | None = None,
        limits: GatewayLimits | None = None,
        capture: Capture | None = None,
        advertise_url: str | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._records_dir = records_dir
        self._limits = limits or GatewayLimits()
        self._capture = capture or Capture()
        self._advertised = (
            None if advertise_url is None else checked_base_url(advertise_url, "advertise_url")
        )
        self._directory = Directory()
        self._budget = ConnectionBudget()
        self._is_running = False
        self._stack = AsyncExitStack()

    @property
    def host(self) -> str:
        """The address bound."""
        return self._host

    @property
    def port(self) -> int:
        """The port bound, once the gateway runs."""
        return self._port

    async def __aenter__(self) -> Self:
        if self._records_dir is not None:
            self._records_dir.mkdir(parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            self._writer = stack.enter_context(RecordWriter())
            self._upstreams = await stack.enter_async_context(Upstreams())
            server = BoundedServer(
                partial(serve_tcp, self._directory),
                Connections(descriptor_share()),
                self._budget,
                OnceLog(_log),
            )
            runner = await stack.enter_async_context(_running(server))
            await web.TCPSite(runner, self._host, self._port).start()
            self._port = runner.addresses[0][1]
            stack.push_async_callback(self._close_endpoints)
            self._is_running = True
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_running = False
        with anyio.CancelScope(shield=True):
            await self._stack.aclose()

    @asynccontextmanager
    async def open(
        self,
        rollout_id: str,
        upstream: str | None,
        api_key: str | None = None,
        limits: GatewayLimits | None = None,
        *,
        kind: Kind = "policy",
        capture: Capture | None = None,
        model: str | None = None,
    ) -> AsyncIterator[Endpoint]:
        """Give a rollout its endpoint; leaving the block ends the calls in flight.

        Args:
            rollout_id: one path segment; any Unicode.
            upstream: base URL of an OpenAI-compatible server,
                ``embedded/<policy>?<parameters>``, or ``litellm/<provider>/<model>``
                (extra ``litellm``). ``None`` is a rollout without a model: every call
                is answered with 404.
            api_key: the real bearer token, sent upstream and seen by nobody else.
            limits: bounds of this endpoint instead of the gateway's.
            kind: ``judge`` is the endpoint of a rollout's grader, open beside the
                policy's, with a URL, a token, a record file and a summary of its own.
            capture: what to ask the upstream for instead of the gateway's.
            model: sent instead of the model name that the agent uses.

        Raises:
            ValueError: an argument is wrong, or the rollout has an open endpoint of
                this kind.
            RuntimeError: the gateway is not running.
        """
        if not self._is_running:
            raise RuntimeError("the gateway is not running: open rollouts inside its block")
        checked_rollout_id(rollout_id)
        limits = limits or self._limits
        endpoint = Endpoint(
            rollout_id,
            rollout_url(self._advertised or self._local, rollout_id, kind),
            local_url=rollout_url(self._local, rollout_id, kind),
            kind=kind,
            upstream=self._upstreams.make(upstream, api_key=api_key, limits=limits),
            upstream_url=upstream,
            api_key=api_key,
            model=model,
            limits=limits,
            capture=capture or self._capture,
            journal=self._journal(rollout_id, kind, limits),
            listen_unix=partial(_listen_unix, self._budget),
            observe=call_observer(kind, upstream),
        )
        self._directory.add(endpoint)
        try:
            yield endpoint
        finally:
            await self._close(endpoint)

    def find(self, url: str) -> Endpoint | None:
        """The open endpoint that ``url`` (its base or its full chat URL) addresses."""
        bases = [self._local, *([self._advertised] if self._advertised else [])]
        address = endpoint_of_url(url, bases)
        if address is None or address.rollout_id is None:
            return None
        return self._directory.get(address.rollout_id, address.kind)

    @property
    def _local(self) -> str:
        return f"http://{netloc(self._host, self._port)}"

    def _journal(self, rollout_id: str, kind: Kind, limits: GatewayLimits) -> Journal | None:
        if self._records_dir is None:
            return None
        path = self._records_dir / record_name(rollout_id, kind)
        return Journal(RecordFile(path, limits.max_records_bytes), self._writer)

    async def _close(self, endpoint: Endpoint) -> None:
        self._directory.remove(endpoint)
        await endpoint.close()

    async def _close_endpoints(self) -> None:
        async with anyio.create_task_group() as group:
            for endpoint in self._directory.endpoints:
                group.start_soon(self._close, endpoint)


@asynccontextmanager
async def _listen_unix(
    budget: ConnectionBudget, endpoint: Endpoint, path: Path
) -> AsyncIterator[None]:
    # A server of its own, so that its connections end with it: a connection left open
    # by one rollout can never be taken for the next rollout's on the same path.
    checked_socket_path(path)
    lifetime = Lifetime(endpoint.rollout_id, endpoint.lifetime)
    handler = partial(serve_unix, endpoint, lifetime)
    server = BoundedServer(handler, endpoint.connections, budget, endpoint.log)
    async with _running(server) as runner:
        try:
            await web.UnixSite(runner, path).start()
            path.chmod(MODE)
            yield
        finally:
            path.unlink(missing_ok=True)
            await lifetime.close()


@asynccontextmanager
async def _running(server: BoundedServer) -> AsyncIterator[web.ServerRunner]:
    runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_SEC)
    await runner.setup()
    try:
        yield runner
    finally:
        with anyio.CancelScope(shield=True):
            await runner.cleanup()
