"""Several servers on one PostgreSQL: any answers, one runs, and the living inherit."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.local_backend.gates import until
from tests.postgres import Cluster
from tests.rollout.server.processes import (
    ServerProcess,
    client,
    poll,
    result,
    server_process,
    start,
    until_status,
    waiting_body,
)
from tests.rollout.server.serving import eventually

pytestmark = pytest.mark.postgres


@dataclass
class Pair:
    """Two servers of one store, and a caller of each."""

    first: ServerProcess
    second: ServerProcess
    one: httpx.AsyncClient
    two: httpx.AsyncClient


@pytest.fixture
async def pair(tmp_path: Path, postgres_url: str) -> AsyncIterator[Pair]:
    """Two server processes."""
    environment = {"OSMOSIS_STORE_URL": postgres_url, "OSMOSIS_STORE_KEY": "a store key"}
    async with (
        server_process(tmp_path, **environment) as first,
        server_process(tmp_path, **environment) as second,
        client(first) as one,
        client(second) as two,
    ):
        yield Pair(first, second, one, two)


async def test_any_server_answers(pair: Pair, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    request = waiting_body(gate)
    token = await start(pair.one, request)
    assert await start(pair.two, request) == token
    assert (await pair.two.post("/rollout", json=waiting_body(gate, label="x"))).status_code == 409
    await until_status(pair.two, "running")
    assert (await poll(pair.two, "another")).status_code == 403
    while (await poll(pair.two, token)).json()["status"] != "running":
        pass
    waiting = asyncio.create_task(poll(pair.two, token))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    gate.write_text("four")
    async with asyncio.timeout(3):  # pushed from the other server
        await waiting
    there = await result(pair.two, token)
    assert there == await result(pair.one, token)
    assert json.loads(there)["status"] == "success"
    listed = (await pair.two.get("/rollouts")).json()["rollouts"]
    assert [found["rollout_id"] for found in listed] == ["r-1"]
    assert pair.first.runs() == ["gate"]


async def test_simultaneous_admissions_run_once(pair: Pair, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.write_text("four")
    for number in range(8):
        request = waiting_body(gate, f"r-{number}")
        tokens = await asyncio.gather(
            *(start(http, request) for http in (pair.one, pair.two, pair.one, pair.two))
        )
        assert len(set(tokens)) == 1
        await result(pair.two, tokens[0], f"r-{number}")
    assert len(pair.first.runs()) == 8


async def test_cancelling_at_another_server(pair: Pair, tmp_path: Path) -> None:
    token = await start(pair.one, waiting_body(tmp_path / "gate"))
    await until_status(pair.two, "running")
    for _ in range(2):
        answer = await pair.two.post("/rollout/cancel", json={"prefix": "r-"})
        assert answer.json()["dispositions"]["r-1"] in {"cancelled_running", "not_found"}
    async with asyncio.timeout(5):
        assert json.loads(await result(pair.two, token))["status"] == "cancelled"


async def test_a_dead_servers_rollouts_are_taken_over(pair: Pair, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    fails = await start(pair.one, waiting_body(gate, "fails"))
    again = await start(pair.one, waiting_body(gate, "again", on_interrupt="rerun"))
    await until_status(pair.two, "running", "fails")
    await until_status(pair.two, "running", "again")
    waiting = asyncio.create_task(result(pair.two, fails, "fails"))
    pair.first.kill()
    found = json.loads(await waiting)
    assert (found["status"], found["err_category"]) == ("failure", "interrupted")
    await until(lambda: len(pair.second.runs()) == 3)
    gate.write_text("four")
    assert json.loads(await result(pair.two, again, "again"))["status"] == "success"
    await pair.first.start()
    assert json.loads(await result(pair.one, again, "again"))["status"] == "success"
    assert len(pair.second.runs()) == 3


async def test_polls_at_another_server_renew_the_lease(tmp_path: Path, postgres_url: str) -> None:
    environment = {
        "OSMOSIS_STORE_URL": postgres_url,
        "OSMOSIS_STORE_KEY": "a store key",
        "TEST_LEASE_SEC": "4",
    }
    async with (
        server_process(tmp_path, **environment) as first,
        server_process(tmp_path, **environment) as second,
        client(first) as one,
        client(second) as two,
    ):
        token = await start(one, waiting_body(tmp_path / "gate"))
        loop = asyncio.get_running_loop()
        began = loop.time()
        while loop.time() < began + 9:
            assert (await poll(two, token)).json()["status"] in {"queued", "running"}
        await until_status(two, "failure")  # nobody polls any more
        assert (await poll(two, token)).json()["err_category"] == "lease_expired"


async def test_the_database_may_go_away_for_a_while(
    pair: Pair, tmp_path: Path, postgres_cluster: Cluster
) -> None:
    gate = tmp_path / "gate"
    token = await start(pair.one, waiting_body(gate))
    await until_status(pair.two, "running")
    await asyncio.to_thread(postgres_cluster.restart)
    gate.write_text("four")
    async with asyncio.timeout(20):
        assert json.loads(await result(pair.one, token))["status"] == "success"

        async def the_other_reads_again() -> bool:
            answer = await poll(pair.two, token)
            assert answer.status_code in {200, 503}
            return answer.status_code == 200 and answer.json()["status"] == "success"

        await eventually(the_other_reads_again)
        second = await start(pair.two, waiting_body(gate, "r-2"))
        assert json.loads(await result(pair.one, second, "r-2"))["status"] == "success"
