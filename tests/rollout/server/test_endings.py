"""Rollouts that end otherwise than by themselves: cancelled, lapsed, crashed, shut down."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from osmosis_ai.rollout import (
    ExecutionBackend,
    ExecutionOutcome,
    ExecutionRequest,
    ExecutionResult,
    LocalBackend,
    RolloutStatus,
)
from osmosis_ai.rollout import run as rollout_run
from osmosis_ai.rollout.server import create_rollout_server, shutdown
from osmosis_ai.rollout.types import POLLING_LEASE_HEADER
from tests.local_backend.gates import Gate, GatedWorkflow, QuickWorkflow, until, workflow_config
from tests.rollout.server.serving import Caller, body, eventually, serve
from tests.rollout.server.workflows import StubbornWorkflow

pytestmark = pytest.mark.usefixtures("artifact_root")


def gated(gate: Gate) -> LocalBackend:
    return LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate, limit=1))


async def dispositions(caller: Caller, **selector: Any) -> Any:
    answer = await caller.cancel(**selector)
    assert answer.status_code == 200, answer.text
    return answer.json()["dispositions"]


async def test_cancel_by_each_selector() -> None:
    async with serve(create_rollout_server(backend=gated(Gate()))) as caller:
        tokens = {name: await caller.admitted(name) for name in ("a-1", "a-2", "b-1")}
        assert (await caller.poll(tokens["a-1"], "a-1")).json()["status"] == "running"
        assert await dispositions(caller, ids=["a-2", "x"]) == {
            "a-2": "cancelled_queued",
            "x": "not_found",
        }
        assert (await caller.result(tokens["a-2"], "a-2"))["status"] == "cancelled"
        assert await dispositions(caller, prefix="a-") == {
            "a-1": "cancelled_running",
            "a-2": "not_found",
        }
        result = await caller.result(tokens["a-1"], "a-1")
        assert result["status"] == "cancelled"
        assert result["err_message"]
        everything = await dispositions(caller, all=True)
        assert everything.pop("b-1") in {"cancelled_queued", "cancelled_running"}
        assert everything == {"a-1": "not_found", "a-2": "not_found"}
        assert (await caller.result(tokens["b-1"], "b-1"))["status"] == "cancelled"


@pytest.mark.parametrize(
    "selector", [{}, {"ids": ["a"], "prefix": "a"}, {"all": True, "ids": []}, {"ids": "a"}]
)
async def test_a_cancellation_needs_one_selector(selector: dict[str, Any]) -> None:
    async with serve(create_rollout_server(backend=gated(Gate()))) as caller:
        assert (await caller.cancel(**selector)).status_code == 422


class PlainBackend(ExecutionBackend):
    """Keeps no state and knows no cancellation; ends when its gate opens."""

    def __init__(self, gate: Gate, answer: dict[str, str] | None = None) -> None:
        self.gate = gate
        self.answer = answer or {}
        self.was_shut_down = False

    async def execute(self, request: ExecutionRequest, *_: Any) -> ExecutionOutcome:
        await self.gate.pass_through()
        return ExecutionOutcome(workflow=ExecutionResult(status=RolloutStatus.SUCCESS))

    async def cancel_rollouts(
        self, ids: Iterable[str] | None = None, prefix: str | None = None, all: bool = False
    ) -> dict[str, str]:
        return {known: self.answer[known] for known in ids or [] if known in self.answer}

    async def shutdown(self) -> None:
        assert self.gate.inside == 0
        self.was_shut_down = True


@pytest.mark.parametrize("answer", [None, {"r-1": "not_found"}])
async def test_a_backend_that_cannot_cancel(answer: dict[str, str] | None) -> None:
    backend = PlainBackend(Gate(), answer)
    async with serve(create_rollout_server(backend=backend)) as caller:
        token = await caller.admitted()
        await until(lambda: backend.gate.inside == 1)
        # The backend reports no status, so the server has seen it queued only.
        assert await dispositions(caller, ids=["r-1"]) == {"r-1": "cancelled_queued"}
        result = await caller.result(token)
    assert result["status"] == "cancelled"
    assert backend.was_shut_down


async def test_asking_twice_for_a_cancellation_under_way_answers_the_same() -> None:
    backend = LocalBackend(workflow=SlowToCancel)
    async with serve(create_rollout_server(backend=backend)) as caller:
        token = await caller.admitted()
        assert (await caller.poll(token)).json()["status"] == "running"
        for _ in range(2):
            assert await dispositions(caller, ids=["r-1"]) == {"r-1": "cancelled_running"}
        assert (await caller.result(token))["status"] == "cancelled"


class SlowToCancel(GatedWorkflow):
    """Takes a while to give up."""

    async def run(self, ctx: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.3)


@pytest.mark.parametrize("workflow", [GatedWorkflow, StubbornWorkflow])
async def test_an_unpolled_rollout_is_cancelled(workflow: Any) -> None:
    gate = Gate()
    backend = LocalBackend(workflow=workflow, workflow_config=workflow_config(gate))
    app = create_rollout_server(
        backend=backend, result_wait_timeout_sec=0.1, polling_lease_timeout_sec=0.4
    )
    async with serve(app) as caller:
        token = await caller.admitted(grade=False)
        for _ in range(8):  # polls keep it alive beyond its lease
            assert (await caller.poll(token)).json()["status"] == "running"
        await until(lambda: backend.health()["concurrency"]["running"] == 0)
        result = (await caller.poll(token)).json()
        assert (result["status"], result["err_category"]) == ("failure", "lease_expired")
        assert result["err_message"] == "polling lease expired"
        assert result["sample"] is None


async def test_a_poll_after_the_deadline_does_not_revive() -> None:
    """The task is still giving up when the poll comes, and its id stays taken until it has."""
    backend = LocalBackend(workflow=SlowToCancel)
    app = create_rollout_server(
        backend=backend,
        result_wait_timeout_sec=0.05,
        polling_lease_timeout_sec=0.1,
        result_retention_sec=0,
    )
    async with serve(app) as caller:
        token = await caller.admitted()
        await asyncio.sleep(0.2)
        assert backend.health()["concurrency"]["running"] == 1
        assert (await caller.poll(token)).json()["err_category"] == "lease_expired"
        assert (await caller.start(label="another")).status_code == 409

        async def nothing_runs() -> bool:
            health = (await caller.http.get("/health")).json()
            return bool(health["lifecycle"]["active_rollouts"] == 0)

        await eventually(nothing_runs)
        assert (await caller.poll(token)).status_code == 404


class BrokenBackend(ExecutionBackend):
    """Raises, or answers a status that is no end."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    async def execute(self, request: ExecutionRequest, *_: Any) -> ExecutionOutcome:
        if self.error is not None:
            raise self.error
        return ExecutionOutcome(workflow=ExecutionResult(status=RolloutStatus.RUNNING))


@pytest.mark.parametrize(
    ("error", "message", "category"),
    [
        (ValueError("bad \udfff"), "bad \ufffd", "validation_error"),
        (TimeoutError("too late"), "too late", "timeout"),
        (RuntimeError(), "RuntimeError", "agent_error"),
        (None, "rollout task crashed", "internal_error"),
    ],
)
async def test_a_backend_that_breaks(error: Exception | None, message: str, category: str) -> None:
    async with serve(create_rollout_server(backend=BrokenBackend(error))) as caller:
        result = await caller.result(await caller.admitted())
        assert (result["status"], result["err_message"]) == ("failure", message)
        assert result["err_category"] == category
        assert (await caller.start("r-2")).status_code == 202


async def test_a_crash_of_the_servers_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(**_: Any) -> None:
        raise KeyError("bug")

    monkeypatch.setattr(rollout_run, "save_trajectory", broken)
    async with serve(create_rollout_server(backend=LocalBackend(workflow=QuickWorkflow))) as caller:
        result = await caller.result(await caller.admitted())
    assert (result["status"], result["err_category"]) == ("failure", "internal_error")


async def test_shutdown_lets_a_rollout_finish() -> None:
    backend = PlainBackend(Gate())
    async with serve(create_rollout_server(backend=backend)) as caller:
        await caller.admitted()
        await until(lambda: backend.gate.inside == 1)
        asyncio.get_running_loop().call_later(0.3, backend.gate.opened.set)
    assert backend.was_shut_down
    assert backend.gate.entered == 1


@pytest.mark.parametrize("kind", ["local", "plain"])
async def test_shutdown_cancels_what_does_not_finish(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    gate = Gate()
    backend = gated(gate) if kind == "local" else PlainBackend(gate)
    async with serve(create_rollout_server(backend=backend, shutdown_grace_sec=0.1)) as caller:
        await caller.admitted("r-1")
        await caller.admitted("r-2")
        await until(lambda: gate.inside >= 1)
    assert gate.inside == 0
    assert not caplog.records


async def test_shutdown_says_what_ignores_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("CANCEL_SEC", "FORCE_SEC"):
        monkeypatch.setattr(shutdown, name, 0.1)
    backend = DeafBackend()
    async with serve(create_rollout_server(backend=backend, shutdown_grace_sec=0.1)) as caller:
        await caller.admitted()
        await until(lambda: backend.running)
    assert not backend.running
    assert "Unconfirmed cleanup" in caplog.text
    assert "r-1" in caplog.text


class DeafBackend(ExecutionBackend):
    """Swallows cancellations for half a second."""

    running = False

    async def execute(self, request: ExecutionRequest, *_: Any) -> ExecutionOutcome:
        self.running = True
        loop = asyncio.get_running_loop()
        cancelled_at = None
        while cancelled_at is None or loop.time() < cancelled_at + 0.5:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                cancelled_at = cancelled_at or loop.time()
        self.running = False
        return ExecutionOutcome(workflow=ExecutionResult(status=RolloutStatus.SUCCESS))


async def test_while_it_shuts_down_polls_are_served_and_rollouts_are_not() -> None:
    """In process: uvicorn closes its port before it ends the lifespan, other servers do not."""
    backend = PlainBackend(Gate())
    app = create_rollout_server(backend=backend)
    leave = asyncio.Event()

    async def live() -> None:
        async with app.router.lifespan_context(app):
            entered.set()
            await leave.wait()

    entered = asyncio.Event()
    transport = httpx.ASGITransport(app)
    async with (
        asyncio.TaskGroup() as group,
        httpx.AsyncClient(transport=transport, base_url="http://server") as http,
    ):
        group.create_task(live())
        await entered.wait()
        admitted = (await http.post("/rollout", json=body())).json()
        await until(lambda: backend.gate.inside == 1)
        leave.set()
        await asyncio.sleep(0)
        assert (await http.post("/rollout", json=body("r-2"))).status_code == 503
        assert (await http.post("/rollout", json=body())).json() == admitted
        health = (await http.get("/health")).json()
        assert health["lifecycle"] == {"accepting_rollouts": False, "active_rollouts": 1}
        backend.gate.opened.set()
        headers = {POLLING_LEASE_HEADER: admitted["polling_lease_token"]}
        result = (await http.get("/rollout/r-1/result", headers=headers)).json()
    assert result["status"] == "success"
    assert backend.was_shut_down
