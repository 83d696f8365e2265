"""The two routes that thousands of rollouts use at once, without the framework's cost.

They answer what the routes of ``routes.protocol`` would, and leave to those
whatever is not a plain request: the published schema and its checks are theirs.
"""

import asyncio
from dataclasses import dataclass

from pydantic import ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.routes.answers import refused, unavailable
from osmosis_ai.rollout.server.routes.protocol import admitted, polled
from osmosis_ai.rollout.server.service import RolloutService
from osmosis_ai.rollout.server.store import StoreError
from osmosis_ai.rollout.types.protocol import POLLING_LEASE_HEADER, RolloutInitRequest
from osmosis_ai.rollout.types.status import RolloutStatus

_PREFIX, _SUFFIX = "/rollout/", "/result"
_LEASE = POLLING_LEASE_HEADER.lower().encode()
_JSON = b"application/json"
_AT_ONCE = 4
"""Admissions that are looked into at once; the others wait their turn, so that timers and
other requests come in between however many arrive together."""

_SEEN = {f"seen={status.value}".encode(): status for status in RolloutStatus}


@dataclass(frozen=True)
class _Asked:
    """A poll: the rollout, the token that it shows, and the status that its caller knows."""

    rollout_id: str
    token: str
    seen: RolloutStatus | None


class DirectRoutes:
    """ASGI middleware, innermost: answers polls and admissions by itself."""

    def __init__(self, app: ASGIApp, *, service: RolloutService) -> None:
        self._app = app
        self._service = service
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] == "http":
            if scope["method"] == "GET":
                asked = _asked(scope)
                if asked is not None:
                    await self._poll(asked, scope, receive, send)
                    return
            elif scope["method"] == "POST" and scope["path"] == "/rollout":
                await self._start(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _poll(self, asked: _Asked, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await polled(self._service, asked.rollout_id, asked.token, asked.seen)
        except RefusedError as exc:
            answer = refused(exc)
        except StoreError as exc:
            answer = unavailable(exc)
        await answer(scope, receive, send)

    async def _start(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        async with self._turns:
            await asyncio.sleep(0)
        request = _request(scope, message)
        if request is None:
            await self._app(scope, _again(message, receive), send)
            return
        try:
            answer = await admitted(self._service, request)
        except RefusedError as exc:
            answer = refused(exc)
        except StoreError as exc:
            answer = unavailable(exc)
        await answer(scope, receive, send)


def _asked(scope: Scope) -> _Asked | None:
    """What a poll asks for, if it is a plain one."""
    path: str = scope["path"]
    if not (path.startswith(_PREFIX) and path.endswith(_SUFFIX)):
        return None
    rollout_id = path[len(_PREFIX) : -len(_SUFFIX)]
    tokens = [value for name, value in scope["headers"] if name == _LEASE]
    query: bytes = scope["query_string"]
    if not rollout_id or "/" in rollout_id or len(tokens) != 1 or not tokens[0]:
        return None
    if query and query not in _SEEN:
        return None
    return _Asked(rollout_id, tokens[0].decode("latin-1"), _SEEN.get(query))


def _request(scope: Scope, message: Message) -> RolloutInitRequest | None:
    """The request, if it is a valid one; all others are the framework's to refuse."""
    types = [value for name, value in scope["headers"] if name == b"content-type"]
    if message["type"] != "http.request" or message.get("more_body") or types != [_JSON]:
        return None
    try:
        return RolloutInitRequest.model_validate_json(message.get("body", b""))
    except ValidationError:
        return None


def _again(message: Message, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return message

    return again
