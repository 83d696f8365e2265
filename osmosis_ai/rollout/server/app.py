"""The HTTP face of a backend: routes and guards around a ``RolloutService``."""

import logging
import os
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI, Response

from osmosis_ai.gateway.tuning import tuned_process
from osmosis_ai.rollout.artifacts import artifact_root
from osmosis_ai.rollout.backend.base import ExecutionBackend
from osmosis_ai.rollout.server.auth import RequireAccess
from osmosis_ai.rollout.server.limits import MAX_BODY_BYTES, BoundBodies
from osmosis_ai.rollout.server.routes.answers import add_handlers, answers
from osmosis_ai.rollout.server.routes.events import event_routes
from osmosis_ai.rollout.server.routes.protocol import protocol_routes
from osmosis_ai.rollout.server.routes.records import record_routes
from osmosis_ai.rollout.server.service import RolloutService
from osmosis_ai.rollout.server.settings import (
    API_KEY_ENV,
    READ_API_KEY_ENV,
    Settings,
    Windows,
    given_api_key,
)
from osmosis_ai.rollout.server.store.database import STORE_URL_ENV, parse_url
from osmosis_ai.rollout.server.store.keys import STORE_KEY_ENV
from osmosis_ai.rollout.server.store.retention import Keep
from osmosis_ai.rollout.types.protocol import POLLING_LEASE_HEADER
from osmosis_ai.telemetry.logs import configure_logs
from osmosis_ai.telemetry.telemetry import Telemetry

__all__ = ["POLLING_LEASE_HEADER", "create_rollout_server"]

logger = logging.getLogger(__name__)

DEFAULT_RESULT_WAIT_TIMEOUT_SEC = 30.0
DEFAULT_POLLING_LEASE_TIMEOUT_SEC = 120.0
DEFAULT_RESULT_RETENTION_SEC = 900.0
DEFAULT_RECORD_RETENTION_SEC = 7 * 86_400.0
DEFAULT_MAX_RECORDS = 100_000
MAX_FILE_BYTES = 512 * 2**20
INSTANCE_ID_ENV = "_OSMOSIS_ROLLOUT_INSTANCE_ID"

type Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[Any]]


def create_rollout_server(
    *,
    backend: ExecutionBackend,
    lifespan: Lifespan | None = None,
    configure_logging: bool = True,
    result_wait_timeout_sec: float = DEFAULT_RESULT_WAIT_TIMEOUT_SEC,
    polling_lease_timeout_sec: float = DEFAULT_POLLING_LEASE_TIMEOUT_SEC,
    result_retention_sec: float = DEFAULT_RESULT_RETENTION_SEC,
    api_key: str | None = None,
    read_api_key: str | None = None,
    store_url: str | None = None,
    store_key: str | None = None,
    record_retention_sec: float = DEFAULT_RECORD_RETENTION_SEC,
    max_records: int = DEFAULT_MAX_RECORDS,
    keep_files: bool = True,
    max_request_bytes: int = MAX_BODY_BYTES,
    shutdown_grace_sec: float = 10.0,
    takeover_sec: float = 30.0,
) -> FastAPI:
    """Serve a backend over HTTP; run the app with any ASGI server that has lifespans.

    Args:
        backend: runs the rollouts; started and shut down with the app.
        lifespan: entered before serving, left after the last rollout ended.
        configure_logging: log at INFO, unless the root logger has handlers: text on a
            terminal, else JSON (``OSMOSIS_LOG_FORMAT``).
        result_wait_timeout_sec: how long a poll waits for a change; above 0.
        polling_lease_timeout_sec: a rollout not polled for this long is
            cancelled; must exceed the wait.
        result_retention_sec: how long a result stays readable; 0 or more. Then
            its id is free again, and only its record is left.
        api_key: bearer that every request needs; by default the environment's
            ``OSMOSIS_ROLLOUT_API_KEY``. Without one only this machine is served.
        read_api_key: another bearer, for what only reads
            (``OSMOSIS_ROLLOUT_READ_API_KEY``).
        store_url: where rollouts are kept (``OSMOSIS_STORE_URL``): by default
            SQLite in ``rollouts.db`` under the artifact root; several servers
            share a ``postgresql://…``.
        store_key: seals credentials in the store (``OSMOSIS_STORE_KEY``); by
            default it follows from ``api_key``.
        record_retention_sec, max_records: how long, and how many, ended rollouts
            stay in lists.
        keep_files: leave trajectories and artifacts when their record goes.
        max_request_bytes: longer bodies are refused.
        shutdown_grace_sec: how long a shutdown lets rollouts finish.
        takeover_sec: a server that shares the store and gives no sign of life
            for so long loses its rollouts to the others.

    Raises:
        ValueError: an argument, or a variable, is out of its range; the text names it.
    """
    root = artifact_root()
    api_key = given_api_key("api_key", api_key, API_KEY_ENV)
    settings = Settings(
        windows=Windows(result_wait_timeout_sec, polling_lease_timeout_sec, result_retention_sec),
        root=root,
        store_url=parse_url(store_url or os.environ.get(STORE_URL_ENV) or None, root),
        store_key=store_key or os.environ.get(STORE_KEY_ENV) or api_key,
        api_key=api_key,
        read_api_key=given_api_key("read_api_key", read_api_key, READ_API_KEY_ENV),
        keep=Keep(record_retention_sec, max_records),
        keep_files=keep_files,
        grace_sec=shutdown_grace_sec,
        takeover_sec=takeover_sec,
    )
    if configure_logging:
        configure_logs()
    identity = {"process_id": str(uuid.uuid4())}
    identity["instance_id"] = os.environ.get(INSTANCE_ID_ENV) or identity["process_id"]
    telemetry = Telemetry(identity["instance_id"])
    service = RolloutService(backend, settings, telemetry)

    @asynccontextmanager
    async def whole_life(app: FastAPI) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            state = await stack.enter_async_context(lifespan(app)) if lifespan else None
            await stack.enter_async_context(service.running())
            stack.enter_context(tuned_process())
            _say_who_is_served(settings)
            yield state

    app = FastAPI(title="Osmosis rollout server", lifespan=whole_life)
    app.state.telemetry = telemetry
    app.add_middleware(BoundBodies, max_bytes=max_request_bytes)
    app.add_middleware(RequireAccess, api_key=settings.api_key, read_api_key=settings.read_api_key)
    add_handlers(app)
    app.include_router(event_routes(service))
    app.include_router(protocol_routes(service, backend, identity))
    app.include_router(record_routes(service, MAX_FILE_BYTES))

    @app.get(
        "/metrics",
        response_class=Response,
        responses=answers() | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        tags=["records"],
    )
    async def metrics() -> Response:
        """Counts and durations in the Prometheus text format."""
        return Response(telemetry.prometheus(), media_type=telemetry.content_type)

    return app


def _say_who_is_served(settings: Settings) -> None:
    if settings.api_key is None:
        logger.warning(
            "No API key: only this machine (loopback) is served. Pass api_key= or set "
            "OSMOSIS_ROLLOUT_API_KEY to serve others"
        )
    logger.info("Rollouts are kept in %s", settings.store_url.render_as_string(hide_password=True))
