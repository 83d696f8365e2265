"""The HTTP face of a backend: four routes around a ``RolloutService``."""

import logging
import math
import os
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from osmosis_ai.rollout.backend.base import ExecutionBackend
from osmosis_ai.rollout.server.auth import RequireApiKey, checked_api_key
from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.service import RolloutService, Windows
from osmosis_ai.rollout.server.wire import clean_text
from osmosis_ai.rollout.types.protocol import (
    POLLING_LEASE_HEADER,
    CancelRolloutsRequest,
    CancelRolloutsResponse,
    RolloutInitRequest,
    RolloutInitResponse,
    RolloutResultResponse,
)

DEFAULT_RESULT_WAIT_TIMEOUT_SEC = 30.0
DEFAULT_POLLING_LEASE_TIMEOUT_SEC = 120.0
DEFAULT_RESULT_RETENTION_SEC = 900.0
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
) -> FastAPI:
    """Serve a backend over HTTP; run the app with any ASGI server that has lifespans.

    Args:
        backend: runs the rollouts; shut down with the app.
        lifespan: entered before serving, left after the last rollout ended.
        configure_logging: log at INFO, unless the root logger has handlers.
        result_wait_timeout_sec: how long a poll waits for a change; above 0.
        polling_lease_timeout_sec: a rollout not polled for this long is
            cancelled; must exceed the wait.
        result_retention_sec: how long a result stays readable; 0 or more.
        api_key: bearer that every request needs; ``None`` serves anybody.

    Raises:
        ValueError: an argument is out of its range; the text names it.
    """
    windows = _checked_windows(
        result_wait_timeout_sec, polling_lease_timeout_sec, result_retention_sec
    )
    service = RolloutService(backend, windows)
    identity = {"process_id": str(uuid.uuid4())}
    identity["instance_id"] = os.environ.get(INSTANCE_ID_ENV) or identity["process_id"]

    @asynccontextmanager
    async def whole_life(app: FastAPI) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            state = await stack.enter_async_context(lifespan(app)) if lifespan else None
            await stack.enter_async_context(service.running())
            yield state

    app = FastAPI(title="Osmosis rollout server", lifespan=whole_life)
    if api_key is not None:
        app.add_middleware(RequireApiKey, api_key=checked_api_key(api_key))
    if configure_logging and not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        return {**backend.health(), **identity, "lifecycle": service.lifecycle()}

    @app.post("/rollout", status_code=202)
    async def start(request: RolloutInitRequest) -> RolloutInitResponse:
        return await service.admit(request)

    @app.get("/rollout/{rollout_id}/result", response_model=RolloutResultResponse)
    async def result(
        rollout_id: str, lease: Annotated[str, Header(alias=POLLING_LEASE_HEADER, min_length=1)]
    ) -> Response:
        return Response(await service.poll(rollout_id, lease), media_type="application/json")

    @app.post("/rollout/cancel")
    async def cancel(request: CancelRolloutsRequest) -> CancelRolloutsResponse:
        return CancelRolloutsResponse(dispositions=await service.cancel(request))

    app.add_exception_handler(RefusedError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


async def _refused(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RefusedError)
    return JSONResponse({"detail": clean_text(exc.detail)}, exc.status_code, exc.headers)


async def _invalid(request: Request, exc: Exception) -> Response:
    """Answer 422 without the input, which may hold a key, a NaN or a lone surrogate."""
    assert isinstance(exc, RequestValidationError)
    problems = [
        {
            "loc": [clean_text(part) if isinstance(part, str) else part for part in error["loc"]],
            "msg": clean_text(error["msg"]),
            "type": error["type"],
        }
        for error in exc.errors()
    ]
    return JSONResponse({"detail": problems}, 422)


def _checked_windows(wait: float, lease: float, retention: float) -> Windows:
    if not (math.isfinite(wait) and wait > 0):
        raise ValueError(f"result_wait_timeout_sec must be finite and above 0, got {wait!r}")
    if not (math.isfinite(lease) and lease > wait):
        raise ValueError(
            "polling_lease_timeout_sec must be finite and exceed result_wait_timeout_sec "
            f"({wait!r}), or a waiting poll would outlive its lease; got {lease!r}"
        )
    if not (math.isfinite(retention) and retention >= 0):
        raise ValueError(f"result_retention_sec must be finite and 0 or more, got {retention!r}")
    return Windows(wait, lease, retention)
