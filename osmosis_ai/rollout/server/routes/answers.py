"""Answers that are not a result, and how the published schema describes them."""

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from osmosis_ai.common.texts import clean_text
from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.store import StoreError
from osmosis_ai.rollout.types.protocol import RolloutInitRequest


class Refusal(BaseModel):
    """Why a request was refused, and what to do."""

    detail: str


class Problem(BaseModel):
    """What is wrong with one part of a request."""

    loc: list[str | int]
    msg: str
    type: str


class Missing(BaseModel):
    """What a request would need for one protocol."""

    missing: list[str]


class Invalid(BaseModel):
    """What is wrong with a request; for a rollout that fits neither protocol, by protocol."""

    detail: str | list[Problem]
    protocols: dict[str, Missing] | None = None


_MODELS: dict[int, tuple[type[BaseModel], str]] = {
    400: (Refusal, "The body is not JSON"),
    401: (Refusal, "No key, or another one"),
    403: (Refusal, "The key or the token does not open this"),
    404: (Refusal, "Not known, or forgotten"),
    408: (Refusal, "The body came too slowly"),
    409: (Refusal, "The id belongs to another rollout"),
    413: (Refusal, "Too large"),
    422: (Invalid, "Not a valid request"),
    429: (Refusal, "No capacity now"),
    503: (Refusal, "The server or its store is not there now"),
}


def answers(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The published description of answers other than success."""
    return {
        code: {"model": _MODELS[code][0], "description": _MODELS[code][1]}
        for code in sorted({401, 403, 422, *codes})
    }


def add_handlers(app: FastAPI) -> None:
    """Turn what routes raise into answers."""
    app.add_exception_handler(RefusedError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(StoreError, _unavailable)


async def _refused(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RefusedError)
    return JSONResponse({"detail": clean_text(exc.detail)}, exc.status_code, exc.headers)


async def _unavailable(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, StoreError)
    return JSONResponse({"detail": str(exc)}, 503, {"Retry-After": "1"})


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
    answer: dict[str, Any] = {"detail": problems}
    if request.url.path == "/rollout" and isinstance(exc.body, dict):
        answer["protocols"] = missing_by_protocol(exc.body)
    return JSONResponse(answer, 422)


def missing_by_protocol(body: dict[str, Any]) -> dict[str, Any]:
    """Which fields a request lacks for each protocol."""
    both = [name for name, f in RolloutInitRequest.model_fields.items() if f.is_required()]
    needed = {"polling": ["rollout_id", *both], "callback": ["completion_callback_url", *both]}
    return {
        protocol: {"missing": [name for name in names if body.get(name) is None]}
        for protocol, names in needed.items()
    }
