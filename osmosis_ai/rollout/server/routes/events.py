"""The route that streams status changes."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Response
from pydantic import StringConstraints
from pydantic.json_schema import SkipJsonSchema
from sse_starlette import EventSourceResponse, ServerSentEvent

from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.routes.answers import answers
from osmosis_ai.rollout.server.service import RolloutService
from osmosis_ai.rollout.server.store.events import CANCEL_ASKED, Event
from osmosis_ai.rollout.server.store.feed import Feed

STREAM_SEC = 3600.0
"""A stream ends then; its reader comes again with the last id, as readers of streams do."""

MAX_STREAMS = 64
_TURN_SEC = 1.0
_GATHER_SEC = 0.05
"""Changes within it are read at once, however many commits they came with."""


def event_routes(service: RolloutService) -> APIRouter:
    """``GET /rollouts/events``."""
    router = APIRouter(tags=["records"])
    open_streams = 0

    @router.get(
        "/rollouts/events",
        response_class=EventSourceResponse,
        responses=answers(429, 503) | {200: _DESCRIPTION},
    )
    async def events(
        last_event_id: Annotated[
            Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")] | SkipJsonSchema[None],
            Header(alias="Last-Event-ID"),
        ] = None,
    ) -> Response:
        """Status changes from now on, or those after ``Last-Event-ID``.

        An event ``gap`` says that some before the next one are not kept any more.
        """
        feed = service.parts.context.store.feed
        if open_streams >= MAX_STREAMS:
            raise RefusedError(429, f"{MAX_STREAMS} streams are open already")
        after = await feed.last() if last_event_id is None else int(last_event_id)

        async def stream() -> AsyncIterator[ServerSentEvent]:
            nonlocal open_streams
            open_streams += 1  # not before: a caller that leaves first is never streamed to
            try:
                async for event in _follow(feed, after, service.ending):
                    yield event
            finally:
                open_streams -= 1

        return EventSourceResponse(stream(), headers={"Cache-Control": "no-store"})

    return router


async def _follow(feed: Feed, after: int, ending: asyncio.Event) -> AsyncIterator[ServerSentEvent]:
    loop = asyncio.get_running_loop()
    ends = loop.time() + STREAM_SEC
    first = await feed.first()
    if first > after + 1:
        yield ServerSentEvent(event="gap", data=json.dumps({"first_kept": first}))
    while loop.time() < ends and not ending.is_set():
        found = await feed.wait_after(after, min(_TURN_SEC, ends - loop.time()))
        for event in found:
            after = event.seq
            if event.status != CANCEL_ASKED:
                yield _encoded(event)
        if found:
            await asyncio.sleep(_GATHER_SEC)


def _encoded(event: Event) -> ServerSentEvent:
    data = {
        "rollout_id": event.rollout_id,
        "status": event.status,
        "at": datetime.fromtimestamp(event.at, UTC).isoformat(),
    }
    return ServerSentEvent(id=str(event.seq), event="status", data=json.dumps(data))


_DESCRIPTION: dict[str, Any] = {
    "description": "A stream of server-sent events, `status` and `gap`, with JSON data",
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}
