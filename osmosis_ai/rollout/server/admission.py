"""From a request to what is stored of it, and back. Decisions only, no I/O."""

import json
import secrets
import time
from dataclasses import dataclass

from osmosis_ai.rollout.server.auth import token_digest
from osmosis_ai.rollout.server.callbacks.auth import ControllerAuth
from osmosis_ai.rollout.server.callbacks.urls import checked_callback_url
from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.store.engine import DATABASE
from osmosis_ai.rollout.server.store.keys import StoreKeys
from osmosis_ai.rollout.server.store.rows import NewRollout
from osmosis_ai.rollout.types.protocol import RolloutInitRequest

CREDENTIALS = ("llm_api_key", "controller_api_key")
_RESERVED = (DATABASE, ".replaced")


@dataclass(frozen=True)
class Admission:
    """A request, taken apart: what is stored in clear, what is not, what tells it from others."""

    request: RolloutInitRequest
    text: bytes
    credentials: dict[str, str]
    fingerprint: bytes

    def row(self, keys: StoreKeys, owner: str, lease_sec: float) -> NewRollout:
        """What to store, with a new nonce and the digest of the token that follows from it."""
        request = self.request
        nonce = secrets.token_bytes(32)
        return NewRollout(
            id=request.rollout_id,
            protocol=request.protocol,
            fingerprint=self.fingerprint,
            nonce=nonce,
            digest=token_digest(keys.token(nonce)),
            request=self.text,
            sealed=keys.seal(self.credentials),
            rerun=request.on_interrupt == "rerun",
            owner=owner,
            admitted_at=time.time(),
            lease_sec=lease_sec if request.protocol == "polling" else None,
        )


def take_apart(request: RolloutInitRequest, keys: StoreKeys) -> Admission:
    """Prepare a request for the store.

    Raises:
        RefusedError: 422, it cannot be kept or served.
    """
    try:
        given = request.model_dump(exclude=set(CREDENTIALS), exclude_unset=True)
        given["rollout_id"] = request.rollout_id
        text = json.dumps(given, sort_keys=True).encode()
    except (ValueError, RecursionError) as exc:
        raise RefusedError(422, "the request is nested too deeply") from exc
    credentials = {name: key for name in CREDENTIALS if (key := getattr(request, name)) is not None}
    secret = json.dumps(credentials, sort_keys=True).encode()
    return Admission(request, text, credentials, keys.keyed_digest(text + b"\0" + secret))


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


def put_together(text: bytes, credentials: dict[str, str]) -> RolloutInitRequest:
    """The request that was stored."""
    return RolloutInitRequest.model_validate({**json.loads(text), **credentials})


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
