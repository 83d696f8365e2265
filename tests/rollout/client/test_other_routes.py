"""Health, idleness, cancellation, and servers of the callback generation."""

import time

import httpx
import pytest

from osmosis_ai.rollout.client import RolloutClient, RolloutProtocolError
from osmosis_ai.rollout.client import client as client_module
from osmosis_ai.rollout.client.caller import Caller
from osmosis_ai.rollout.client.status_polls import poll_status
from tests.rollout.client.scripted import HEALTH, Step, answered, scripted

PROMPT = [{"role": "user", "content": "2 + 2"}]
MODEL = "http://model/v1"
STATUS = "GET /rollout/r-1/status"
CANCEL = "POST /rollout/cancel"


def active(count: int, process_id: str = "p-1") -> dict[str, object]:
    lifecycle = {"accepting_rollouts": True, "active_rollouts": count}
    return {"status": "ok", "process_id": process_id, "lifecycle": lifecycle}


async def test_health() -> None:
    async with scripted(health=[active(2)]) as server, RolloutClient(server.url) as client:
        assert (await client.health())["lifecycle"]["active_rollouts"] == 2


async def test_waiting_until_idle() -> None:
    steps: list[Step] = [active(2), "drop", 503, active(1), active(0)]
    async with scripted(health=steps) as server, RolloutClient(server.url) as client:
        found = await client.wait_idle(poll_interval_sec=0.01, process_id="p-1")
    assert found == active(0)
    assert server.count(HEALTH) == 5


async def test_waiting_for_the_callback_generation() -> None:
    steps: list[Step] = [
        {"status": "ok", "concurrency": {"max_concurrent": 4, "queued": 1, "running": 1}},
        {"status": "ok", "concurrency": {"max_concurrent": 4, "queued": 0, "running": 0}},
    ]
    async with scripted(health=steps) as server, RolloutClient(server.url) as client:
        assert (await client.wait_idle(poll_interval_sec=0.01))["status"] == "ok"


async def test_waiting_in_vain() -> None:
    async with scripted(health=[active(1)]) as server, RolloutClient(server.url) as client:
        with pytest.raises(TimeoutError):
            await client.wait_idle(timeout_sec=0.2, poll_interval_sec=0.01)


@pytest.mark.parametrize("health", [active(1, "p-2"), {"status": "ok"}, answered(401)])
async def test_waiting_for_the_wrong_server(health: Step) -> None:
    async with scripted(health=[health]) as server, RolloutClient(server.url) as client:
        with pytest.raises(RolloutProtocolError):
            await client.wait_idle(timeout_sec=5, process_id="p-1")
    assert server.count(HEALTH) == 1


async def test_cancelling() -> None:
    answer: dict[str, object] = {"dispositions": {"r-1": "cancelled_running"}}
    async with scripted() as server, RolloutClient(server.url) as client:
        server.steps[CANCEL] = [answer]
        assert (await client.cancel_rollout("r-1")).dispositions == answer["dispositions"]
    assert server.of(CANCEL)[0].body == b'{"ids":["r-1"]}'


async def test_a_cancellation_that_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CANCEL_SEC", 0.3)
    async with scripted() as server, RolloutClient(server.url) as client:
        server.steps[CANCEL] = ["hang"]
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            await client.cancel_rollout("r-1")
    assert time.monotonic() - began < 3


async def test_a_server_without_leases_is_watched() -> None:
    async with scripted(admit=[{}]) as server, RolloutClient(server.url) as client:
        server.steps[STATUS] = [
            {"rollout_id": "r-1", "status": "running", "reward": None, "err_message": None},
            "drop",
            503,
            {"rollout_id": "r-1", "status": "success", "reward": 0.5, "err_message": None},
        ]
        handle = await client.run_rollout_async(
            PROMPT, MODEL, "r-1", completion_callback_url="http://trainer/done"
        )
        assert handle.admission is None
        assert [change.status async for change in handle] == ["queued", "running", "success"]
        result = await handle
    assert result.sample is not None
    assert (result.sample.reward, result.sample.messages) == (0.5, [])


async def test_a_server_that_keeps_no_status_is_not_watched_for_ever() -> None:
    async with scripted() as server, httpx.AsyncClient() as http:
        server.steps[STATUS] = [{"rollout_id": "r-1", "status": "unknown"}]
        watching = poll_status(
            Caller(server.url, http, None), "r-1", interval_sec=0.05, unknown_sec=0.3
        )
        results = [result async for result in watching]
    assert [result.status for result in results] == ["unknown"]
    assert "completion_callback_url" in (results[0].err_message or "")
    assert server.count(STATUS) > 3
