"""A request as it is stored: its text, its credentials apart, and the way back."""

import json
import secrets
import time
from dataclasses import dataclass
from typing import Any

from osmosis_ai.common.urls import url_secrets
from osmosis_ai.rollout.server.auth import token_digest
from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.store.admissions import NewRollout
from osmosis_ai.rollout.server.store.keys import StoreKeys
from osmosis_ai.rollout.types.protocol import RolloutInitRequest

CREDENTIALS = ("llm_api_key", "controller_api_key")
URLS = ("chat_completions_url", "completion_callback_url", "grader_callback_url")
"""Sealed as a whole where they hold a key; the text keeps what of them may be read."""


@dataclass(frozen=True)
class SerializedRequest:
    """What a request becomes before it is stored.

    Attributes:
        text: its JSON without credentials.
        credentials: these, by the name of their field.
        fingerprint: tells the request from any other, its credentials included.
    """

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


def serialize(request: RolloutInitRequest, keys: StoreKeys) -> SerializedRequest:
    """Prepare a request for the store.

    Raises:
        RefusedError: 422, it is nested too deeply to be kept.
    """
    try:
        given = request.model_dump(exclude=set(CREDENTIALS), exclude_unset=True)
        given["rollout_id"] = request.rollout_id
        credentials = _taken_out(request, given)
        text = json.dumps(given, sort_keys=True).encode()
    except (ValueError, RecursionError) as exc:
        raise RefusedError(422, "the request is nested too deeply") from exc
    secret = json.dumps(credentials, sort_keys=True).encode()
    return SerializedRequest(request, text, credentials, keys.keyed_digest(text + b"\0" + secret))


def _taken_out(request: RolloutInitRequest, given: dict[str, Any]) -> dict[str, str]:
    """The credentials of a request; those in its URLs are hidden in what was ``given``."""
    found = {name: key for name in CREDENTIALS if (key := getattr(request, name)) is not None}
    for name in URLS:
        url = given.get(name)
        if url is not None and (known := url_secrets(url)).secrets:
            found[name], given[name] = url, known.shown
    return found


def restore(text: bytes, credentials: dict[str, str]) -> RolloutInitRequest:
    """The request that was serialized.

    Raises:
        ValueError: the text is none of this version's.
    """
    return RolloutInitRequest.model_validate({**json.loads(text), **credentials})
