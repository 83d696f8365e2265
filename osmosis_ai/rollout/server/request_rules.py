"""Rules for requests: what this server can serve, and what a field that is left out means."""

from osmosis_ai.rollout.server.callbacks.auth import ControllerAuth
from osmosis_ai.rollout.server.callbacks.urls import checked_callback_url
from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.store.database import DATABASE_FILE
from osmosis_ai.rollout.types.protocol import RolloutInitRequest

_RESERVED = (DATABASE_FILE, ".replaced")


def check_names(request: RolloutInitRequest) -> None:
    """Refuse an id or a callback that this server cannot serve.

    Raises:
        RefusedError: 422, the text names the field.
    """
    if request.rollout_id.lower().startswith(_RESERVED):
        raise RefusedError(422, f"rollout_id {request.rollout_id!r} names files of the server")
    try:
        if request.completion_callback_url is not None:
            checked_callback_url(request.completion_callback_url)
        if request.grader_callback_url is not None:
            checked_callback_url(request.grader_callback_url, "grader_callback_url")
        if request.protocol == "callback":
            ControllerAuth(request.controller_api_key)
    except ValueError as exc:
        raise RefusedError(422, str(exc)) from exc


def model_key(request: RolloutInitRequest) -> str | None:
    """The key for the model's server: the callback protocol falls back to the trainer's."""
    if request.llm_api_key is None and request.protocol == "callback":
        return request.controller_api_key
    return request.llm_api_key


def wants_grade(request: RolloutInitRequest) -> bool:
    """Whether to grade: in the callback protocol only for somebody who hears of it."""
    if request.protocol == "callback" and "grade" not in request.model_fields_set:
        return request.grader_callback_url is not None
    return request.grade
