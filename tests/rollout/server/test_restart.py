"""A server that is killed, or told to end, and comes back: nothing is lost and nothing doubled."""

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

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


@pytest.fixture
async def server(tmp_path: Path, store_url: str) -> AsyncIterator[ServerProcess]:
    """A server process on each kind of store."""
    environment = {"OSMOSIS_STORE_URL": store_url, "OSMOSIS_STORE_KEY": "a store key"}
    async with server_process(tmp_path, **environment) as running:
        yield running


async def until_runs(server: ServerProcess, count: int) -> None:
    """Wait until the backend began a rollout for the ``count``-th time."""

    async def there_are() -> bool:
        return len(server.runs()) == count

    await eventually(there_are, 60)


async def test_a_result_outlives_its_server(server: ServerProcess, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.write_text("four")
    request = waiting_body(gate, metadata={"row": 1})
    async with client(server) as http:
        token = await start(http, request)
        before = await result(http, token)
        assert json.loads(before)["sample"]["reward"] == 1.0
        server.kill()
        await server.start()
        assert (await poll(http, token)).content == before
        assert await start(http, request) == token
        assert (await http.post("/rollout", json=waiting_body(gate))).status_code == 409
        assert (await poll(http, "another")).status_code == 403
    assert server.runs() == ["gate"]


async def test_what_ran_is_interrupted(server: ServerProcess, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    request = waiting_body(gate)
    async with client(server) as http:
        token = await start(http, request)
        await until_status(http, "running")
        server.kill()
        await server.start()
        ended = await result(http, token)
        assert await start(http, request) == token
        server.kill()
        await server.start()
        assert (await poll(http, token)).content == ended
    found = json.loads(ended)
    assert (found["status"], found["err_category"]) == ("failure", "interrupted")
    assert "engine restarted" in found["err_message"]
    assert "on_interrupt" in found["err_message"]
    assert server.runs() == ["gate"]


async def test_what_asks_for_it_is_run_again(server: ServerProcess, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    url = "http://me:sk-sealed-secret@127.0.0.1:9/v1?api_key=sk-sealed-secret"
    key = {"chat_completions_url": url, "llm_api_key": "sk-sealed-secret"}
    request = waiting_body(gate, on_interrupt="rerun", **key)
    async with client(server) as http:
        token = await start(http, request)
        await until_status(http, "running")
        server.kill()
        await server.start()
        await until_status(http, "running")
        gate.write_text("four")
        found = json.loads(await result(http, token))
        status = (await http.get("/rollout/r-1/status")).json()
    assert (found["status"], found["sample"]["reward"]) == ("success", 1.0)
    assert status["attempts"] == 2
    assert server.runs() == ["gate", "gate"]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"sk-sealed-secret" not in path.read_bytes(), path


async def test_reruns_are_bounded(server: ServerProcess, tmp_path: Path) -> None:
    async with client(server) as http:
        token = await start(http, waiting_body(tmp_path / "gate", on_interrupt="rerun"))
        for runs in range(1, 5):
            # The status alone may be what the killed server left, until another has taken over.
            await until_runs(server, runs)
            server.kill()
            await server.start()
        found = json.loads(await result(http, token))
    assert (found["status"], found["err_category"]) == ("failure", "interrupted")
    assert "3 times" in found["err_message"]
    assert len(server.runs()) == 4


async def test_a_cancellation_outlives_its_server(server: ServerProcess, tmp_path: Path) -> None:
    async with client(server) as http:
        token = await start(http, waiting_body(tmp_path / "gate", on_interrupt="rerun"))
        await until_status(http, "running")
        answer = await http.post("/rollout/cancel", json={"ids": ["r-1"]})
        assert answer.json()["dispositions"] == {"r-1": "cancelled_running"}
        server.kill()
        await server.start()
        assert json.loads(await result(http, token))["status"] == "cancelled"


async def test_a_signal_lets_rollouts_finish(server: ServerProcess, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with client(server) as http:
        token = await start(http, waiting_body(gate))
        await until_status(http, "running")
        server.signal()
        async with client(server) as another:
            # Others are refused, this one is answered until it has ended.
            while (await another.get("/health")).json()["lifecycle"]["accepting_rollouts"]:
                pass
            refused = await another.post("/rollout", json=waiting_body(gate, "r-2"))
            assert refused.status_code == 503
            assert await start(another, waiting_body(gate)) == token
        gate.write_text("four")
        before = await result(http, token)
        assert await server.exited() == 0
        await server.start()
        assert (await poll(http, token)).content == before
    assert json.loads(before)["status"] == "success"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_second_signal_cuts_the_wait_and_not_the_writing(
    server: ServerProcess, tmp_path: Path, number: signal.Signals
) -> None:
    gate = tmp_path / "gate"
    async with client(server) as http:
        token = await start(http, waiting_body(gate))
        again = await start(http, waiting_body(gate, "r-2", on_interrupt="rerun"))
        await until_status(http, "running")
        await until_status(http, "running", "r-2")
        server.signal(number)
        server.signal(number)
        assert await server.exited() == 0
        gate.write_text("four")
        await server.start()
        assert json.loads(await result(http, token))["status"] == "cancelled"
        # It was handed over to the next life.
        assert json.loads(await result(http, again, "r-2"))["status"] == "success"
    assert sorted(server.runs()) == ["gate", "gate", "gate"]


async def test_without_a_key_credentials_are_not_kept(tmp_path: Path) -> None:
    key = {"chat_completions_url": "http://127.0.0.1:9/v1?api_key=sk-unsealed-secret"}
    request = waiting_body(tmp_path / "gate", on_interrupt="rerun", **key)
    async with server_process(tmp_path) as server, client(server) as http:
        token = await start(http, request)
        await until_status(http, "running")
        server.kill()
        await server.start()
        found = json.loads(await result(http, token))
        assert await start(http, request) == token
    assert (found["status"], found["err_category"]) == ("failure", "interrupted")
    assert "OSMOSIS_STORE_KEY" in found["err_message"]
    secret = tmp_path / "root" / "rollouts.db.secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"sk-unsealed-secret" not in path.read_bytes(), path


async def test_a_sqlite_store_has_one_server(tmp_path: Path) -> None:
    async with server_process(tmp_path) as server:
        second = ServerProcess(tmp_path, {})
        with pytest.raises(AssertionError, match="another rollout server holds"):
            await second.start()
        assert second.process is not None
        assert second.process.returncode != 0
        server.signal()
        assert await server.exited() == 0
