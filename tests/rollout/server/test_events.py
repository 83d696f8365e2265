"""The stream of status changes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from osmosis_ai.rollout import LocalBackend
from osmosis_ai.rollout.server import create_rollout_server, upkeep
from osmosis_ai.rollout.server.routes import events
from tests.local_backend.gates import QuickGrader, QuickWorkflow
from tests.rollout.server.serving import Caller, eventually, serve

pytestmark = pytest.mark.usefixtures("artifact_root")


def quick(store_url: str, **arguments: Any) -> Any:
    backend = LocalBackend(workflow=QuickWorkflow, grader=QuickGrader)
    return create_rollout_server(
        backend=backend, store_url=store_url, store_key="a store key", **arguments
    )


@asynccontextmanager
async def stream(caller: Caller, last: str | None = None) -> AsyncIterator[AsyncIterator[Any]]:
    """The events of a stream, decoded."""
    headers = {} if last is None else {"Last-Event-ID": last}
    async with caller.http.stream("GET", "/rollouts/events", headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")

        async def decoded() -> AsyncIterator[dict[str, Any]]:
            event: dict[str, Any] = {}
            async for line in answer.aiter_lines():
                if not line and "data" in event:
                    yield {**event, "data": json.loads(event["data"])}
                    event = {}
                elif line and not line.startswith(":"):
                    name, _, value = line.partition(": ")
                    event[name] = value

        yield decoded()


async def until_end(reading: AsyncIterator[Any], rollout_id: str) -> list[dict[str, Any]]:
    seen = []
    async with asyncio.timeout(10):
        async for event in reading:
            seen.append(event)
            if event["data"].get("rollout_id") == rollout_id and event["data"]["status"] in {
                "success",
                "failure",
            }:
                break
    return seen


async def test_changes_are_streamed_and_resumed(store_url: str) -> None:
    async with serve(quick(store_url)) as caller:
        await caller.result(await caller.admitted("before"), "before")
        async with stream(caller) as reading:
            token = await caller.admitted("r-1")
            seen = await until_end(reading, "r-1")
            await caller.result(token, "r-1")
        assert {event["data"]["rollout_id"] for event in seen} == {"r-1"}
        assert [event["data"]["status"] for event in seen] == [
            "queued", "running", "grading", "success",
        ]  # fmt: skip
        numbers = [int(event["id"]) for event in seen]
        assert numbers == sorted(numbers)
        await caller.result(await caller.admitted("r-2"), "r-2")
        async with stream(caller, seen[1]["id"]) as reading:
            resumed = await until_end(reading, "r-2")
        assert resumed[:2] == seen[2:]
        assert [event["data"]["status"] for event in resumed[2:]] == [
            "queued", "running", "grading", "success",
        ]  # fmt: skip


async def test_a_gap_is_told(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "PRUNE_SEC", 0.1)
    async with serve(quick(store_url, max_records=1, result_retention_sec=0)) as caller:
        for number in range(6):
            await caller.admitted(f"r-{number}")

        async def one_is_left() -> bool:
            return len((await caller.http.get("/rollouts")).json()["rollouts"]) == 1

        await eventually(one_is_left)
        async with stream(caller, "1") as reading, asyncio.timeout(10):
            first = await anext(reading)
        assert first["event"] == "gap"
        assert first["data"]["first_kept"] > 2


async def test_streams_are_bounded_and_end(monkeypatch: pytest.MonkeyPatch, store_url: str) -> None:
    monkeypatch.setattr(events, "MAX_STREAMS", 2)
    async with serve(quick(store_url)) as caller:
        async with stream(caller), stream(caller):
            assert (await caller.http.get("/rollouts/events")).status_code == 429
        monkeypatch.setattr(events, "STREAM_SEC", 0.2)

        async def one_is_free() -> bool:
            return (await caller.http.get("/rollouts/events")).status_code == 200

        await eventually(one_is_free)
        wrong = await caller.http.get("/rollouts/events", headers={"Last-Event-ID": "x"})
        assert wrong.status_code == 422
