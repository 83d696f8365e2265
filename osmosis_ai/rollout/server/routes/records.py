"""The routes that only read: status, lists, trajectories, artifacts."""

import asyncio
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import StringConstraints
from pydantic.json_schema import SkipJsonSchema
from starlette.types import Receive, Scope, Send

from osmosis_ai.rollout.artifacts import ARTIFACTS
from osmosis_ai.rollout.server.describing import Time, describe, page, read_cursor
from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.files import (
    CONTENT_TYPES,
    OpenFile,
    content_type,
    list_below,
    open_below,
)
from osmosis_ai.rollout.server.queries import unknown
from osmosis_ai.rollout.server.routes.answers import answers
from osmosis_ai.rollout.server.routes.protocol import RolloutPath
from osmosis_ai.rollout.server.service import RolloutService
from osmosis_ai.rollout.server.store import Wanted
from osmosis_ai.rollout.server.wire import is_clean
from osmosis_ai.rollout.trajectory.save import TRAJECTORY
from osmosis_ai.rollout.types.protocol import (
    ArtifactFile,
    ArtifactList,
    RolloutList,
    RolloutRecord,
)
from osmosis_ai.rollout.types.status import RolloutStatus

type _Cursor = Annotated[str, StringConstraints(pattern=r"^before-[1-9][0-9]{0,17}$")]

_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cache-Control": "no-store",
}


def record_routes(service: RolloutService, max_file_bytes: int) -> APIRouter:
    """The routes that a read key opens."""
    router = APIRouter(tags=["records"])
    root = service.settings.root

    @router.get("/rollouts", responses=answers(503))
    async def rollouts(
        status: Annotated[list[RolloutStatus] | SkipJsonSchema[None], Query()] = None,
        prefix: str = "",
        since: Time | SkipJsonSchema[None] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        cursor: _Cursor | SkipJsonSchema[None] = None,
    ) -> RolloutList:
        """Rollouts, newest first; ``since`` is about their admission."""
        before = read_cursor(cursor)
        if not is_clean(prefix):
            return RolloutList(rollouts=[])
        wanted = Wanted(
            frozenset(status or ()),
            prefix,
            None if since is None else since.timestamp(),
            before,
            limit + 1,
        )
        return page(list(await service.parts.context.store.select(wanted)), limit)

    @router.get("/rollout/{rollout_id}/status", responses=answers(404, 503))
    async def status_of(rollout_id: RolloutPath) -> RolloutRecord:
        """Where a rollout is; never waits."""
        parts = service.parts
        record = await parts.queries.record(rollout_id)
        if record is None:
            raise unknown(rollout_id)
        described = describe(record)
        run = parts.runner.find(rollout_id)
        if run is not None and not record.finished and not run.watch.finished:
            described.status = run.watch.status
        return described

    @router.get(
        "/rollout/{rollout_id}/trajectory",
        response_class=Response,
        responses=answers(404, 413) | {200: {"content": {"application/json": {}}}},
    )
    async def trajectory(rollout_id: RolloutPath) -> Response:
        """The saved ATIF document."""
        return await send(rollout_id, (TRAJECTORY,), "trajectory")

    @router.get("/rollout/{rollout_id}/artifacts", responses=answers(404))
    async def artifacts(rollout_id: RolloutPath) -> ArtifactList:
        """The files that the rollout left."""
        listed = await asyncio.to_thread(list_below, root, (rollout_id, ARTIFACTS))
        if listed is None:
            raise RefusedError(404, f"rollout {rollout_id!r} has no artifacts on this machine")
        found, truncated = listed
        return ArtifactList(
            rollout_id=rollout_id,
            artifacts=[
                ArtifactFile(
                    path=one.path,
                    size=one.size,
                    modified_at=datetime.fromtimestamp(one.modified_at, UTC),
                )
                for one in found
            ],
            truncated=truncated,
        )

    @router.get(
        "/rollout/{rollout_id}/artifacts/{path:path}",
        response_class=Response,
        responses=answers(404, 413) | {200: {"content": dict.fromkeys(CONTENT_TYPES, _BYTES)}},
    )
    async def artifact(rollout_id: RolloutPath, path: str) -> Response:
        """One of these files, to be saved and not shown."""
        return await send(rollout_id, (ARTIFACTS, *path.split("/")), "artifact")

    async def send(rollout_id: str, below: tuple[str, ...], what: str) -> Response:
        found = await asyncio.to_thread(open_below, root, (rollout_id, *below))
        if found is None:
            raise RefusedError(404, f"rollout {rollout_id!r} has no such {what} on this machine")
        return _answer(found, below[-1], max_file_bytes)

    return router


_BYTES: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


class _FileResponse(StreamingResponse):
    """Sends a file, and closes it also when the caller left before its first byte."""

    def __init__(self, found: OpenFile, name: str) -> None:
        filename = quote(PurePosixPath(name).name, safe="")
        headers = {
            **_SAFE,
            "Content-Length": str(found.size),
            "Content-Disposition": f"attachment; filename*=UTF-8''{filename}",
        }
        super().__init__(found.chunks(), media_type=content_type(name), headers=headers)
        self._found = found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._found.close()


def _answer(found: OpenFile, name: str, max_bytes: int) -> Response:
    if found.size > max_bytes:
        found.close()
        problem = f"{name!r} has {found.size} bytes; files are served up to {max_bytes}"
        raise RefusedError(413, problem)
    return _FileResponse(found, name)
