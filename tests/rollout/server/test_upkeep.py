"""What the server does by itself: asking backends, settling what was stored and does not run."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from osmosis_ai.rollout import (
    ExecutionBackend,
    ExecutionOutcome,
    ExecutionRequest,
    ExecutionResult,
    LocalBackend,
    RolloutStatus,
)
from osmosis_ai.rollout.server import create_rollout_server, upkeep
from osmosis_ai.rollout.server.store import Store, StoreUnavailableError
from osmosis_ai.rollout.server.store.admissions import NewRollout
from tests.local_backend.gates import QuickWorkflow, until
from tests.rollout.server.serving import Caller, body, eventually, serve

pytestmark = pytest.mark.usefixtures("artifact_root")


class Reporting(ExecutionBackend):
    """Reports its status only when it is asked."""

    def __init__(self) -> None:
        self.status = RolloutStatus.QUEUED
        self.end = asyncio.Event()
        self.started = 0

    async def start(self) -> None:
        self.started += 1

    async def execute(self, request: ExecutionRequest, *_: Any) -> ExecutionOutcome:
        await self.end.wait()
        return ExecutionOutcome(workflow=ExecutionResult(status=RolloutStatus.SUCCESS))

    def rollout_status(self, rollout_id: str) -> dict[str, Any] | None:
        if self.status is RolloutStatus.UNKNOWN:
            raise RuntimeError("not now")
        return {"status": self.status}


async def test_a_backend_that_does_not_push_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "SAMPLE_SEC", 0.05)
    backend = Reporting()
    async with serve(create_rollout_server(backend=backend)) as caller:
        token = await caller.admitted()
        backend.status = RolloutStatus.UNKNOWN  # raises, which must not end the asking
        await asyncio.sleep(0.2)
        for status in (RolloutStatus.RUNNING, RolloutStatus.GRADING):
            backend.status = status
            assert (await caller.poll(token)).json()["status"] == status
        # An end counts when the result is there, not when the backend says so.
        backend.status = RolloutStatus.SUCCESS
        waiting = asyncio.create_task(caller.poll(token))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        backend.end.set()
        assert (await waiting).json()["status"] == "success"
    assert backend.started == 1


@asynccontextmanager
async def lost_answer(store_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Caller]:
    """A server whose first admission is stored, and the store's answer to it lost."""
    admit = Store.admit
    lost: list[str] = []

    async def losing(self: Store, rollout: NewRollout) -> int | None:
        number = await admit(self, rollout)
        if not lost:
            lost.append(rollout.id)
            raise StoreUnavailableError("the connection broke")
        return number

    monkeypatch.setattr(Store, "admit", losing)
    app = create_rollout_server(
        backend=LocalBackend(workflow=QuickWorkflow),
        store_url=store_url,
        store_key="a store key",
    )
    async with serve(app) as caller:
        refused = await caller.start(grade=False)
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        yield caller


async def test_a_caller_that_asks_again_gets_its_rollout(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with lost_answer(store_url, monkeypatch) as caller:
        token = await caller.admitted(grade=False)
        assert (await caller.result(token))["status"] == "success"


async def test_what_nobody_asks_for_again_is_ended(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "SWEEP_SEC", 0.1)
    async with lost_answer(store_url, monkeypatch) as caller:

        async def ended() -> bool:
            found = (await caller.http.get("/rollout/r-1/status")).json()
            return bool(found["err_category"] == "interrupted")

        await eventually(ended)


async def test_results_wait_for_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    finish = Store.finish
    away = True
    tried = 0

    async def broken(self: Store, result: Any) -> bool:
        nonlocal tried
        tried += 1
        if away:
            raise StoreUnavailableError("disk full")
        return await finish(self, result)

    monkeypatch.setattr(Store, "finish", broken)
    backend = LocalBackend(workflow=QuickWorkflow)
    async with serve(create_rollout_server(backend=backend)) as caller:
        token = (await caller.http.post("/rollout", json=body(grade=False))).json()
        await until(lambda: tried >= 2)
        status = (await caller.http.get("/rollout/r-1/status")).json()
        assert status["finished_at"] is None
        away = False
        result = await caller.result(token["polling_lease_token"])
    assert result["status"] == "success"
