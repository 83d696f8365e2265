"""The routes that trainers need: start, result, cancel, health."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict

from osmosis_ai.rollout.backend.base import ExecutionBackend
from osmosis_ai.rollout.server.routes.answers import answers
from osmosis_ai.rollout.server.service import RolloutService
from osmosis_ai.rollout.types.protocol import (
    POLLING_LEASE_HEADER,
    CancelRolloutsRequest,
    CancelRolloutsResponse,
    RolloutInitRequest,
    RolloutInitResponse,
    RolloutResultResponse,
)
from osmosis_ai.rollout.types.status import RolloutStatus

type RolloutPath = Annotated[str, Path(min_length=1)]


class CallbackAdmission(BaseModel):
    """The admission of a rollout that is called back for: nothing to tell."""

    model_config = ConfigDict(extra="forbid")


class Lifecycle(BaseModel):
    """The server's own state."""

    accepting_rollouts: bool
    active_rollouts: int


class Health(BaseModel):
    """The backend's report, and the server's own part."""

    model_config = ConfigDict(extra="allow")

    instance_id: str
    process_id: str
    idempotent_admission: Literal[True] = True
    lifecycle: Lifecycle


def protocol_routes(
    service: RolloutService, backend: ExecutionBackend, identity: dict[str, str]
) -> APIRouter:
    """The routes of both protocols."""
    router = APIRouter(tags=["protocol"])

    @router.get("/health", response_model=Health, responses=answers())
    async def health() -> dict[str, Any]:
        """How the backend and the server are."""
        lifecycle = {
            "accepting_rollouts": service.accepting,
            "active_rollouts": service.active,
        }
        own = {**identity, "lifecycle": lifecycle, "idempotent_admission": True}
        return {**backend.health(), **own}

    @router.post(
        "/rollout",
        status_code=202,
        response_model=RolloutInitResponse | CallbackAdmission,
        responses=answers(400, 408, 409, 413, 429, 503),
    )
    async def start(request: RolloutInitRequest) -> Response:
        """Start a rollout. The same request again is the same admission."""
        answer = await service.parts.admitter.admit(request)
        if request.protocol == "callback":
            return JSONResponse({}, 202)
        admission = RolloutInitResponse(
            rollout_id=answer.rollout_id,
            status=answer.status,
            polling_lease_token=answer.token,
            result_wait_timeout_sec=service.settings.windows.wait,
            polling_lease_timeout_sec=service.settings.windows.lease,
        )
        return JSONResponse(admission.model_dump(mode="json"), 202)

    @router.get(
        "/rollout/{rollout_id}/result",
        response_model=RolloutResultResponse,
        responses=answers(404, 503),
    )
    async def result(
        rollout_id: RolloutPath,
        lease: Annotated[str, Header(alias=POLLING_LEASE_HEADER, min_length=1)],
        seen: RolloutStatus | None = None,
    ) -> Response:
        """Wait until the status is another than ``seen``, and renew the lease.

        Without ``seen`` it is the one of the last answer.
        """
        body = await service.parts.queries.poll(rollout_id, lease, seen)
        return Response(body, media_type="application/json")

    @router.post("/rollout/cancel", responses=answers(400, 408, 413, 503))
    async def cancel(request: CancelRolloutsRequest) -> CancelRolloutsResponse:
        """Cancel rollouts, whichever server runs them."""
        return CancelRolloutsResponse(dispositions=await service.parts.queries.cancel(request))

    return router
