"""What the server answers to requests that it does not simply run."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import httpx
import pytest

from osmosis_ai.rollout import LocalBackend
from osmosis_ai.rollout.server import create_rollout_server
from tests.local_backend.gates import Gate, GatedWorkflow, QuickWorkflow, until, workflow_config
from tests.rollout.server.serving import JSON, body, serve

pytestmark = pytest.mark.usefixtures("artifact_root")


def gated(gate: Gate, **arguments: Any) -> LocalBackend:
    return LocalBackend(
        workflow=GatedWorkflow, workflow_config=workflow_config(gate, limit=1), **arguments
    )


async def test_an_identical_replay_gets_the_same_token() -> None:
    gate = Gate()
    async with serve(create_rollout_server(backend=gated(gate))) as caller:
        token = await caller.admitted(metadata={"a": 1, "b": 2})
        assert await caller.admitted(metadata={"b": 2, "a": 1}) == token
        gate.opened.set()
        await caller.result(token)
        replay = (await caller.start(metadata={"a": 1, "b": 2})).json()
        assert replay["polling_lease_token"] == token
        assert replay["status"] == "failure"  # it was admitted, ran once, and has no grader
        assert gate.entered == 1


@pytest.mark.parametrize(
    "headers", [JSON, {"Content-Type": "application/json; charset=utf-8"}], ids=["short", "long"]
)
async def test_however_a_request_is_sent_it_is_the_same_admission(headers: dict[str, str]) -> None:
    async with serve(create_rollout_server(backend=LocalBackend(workflow=QuickWorkflow))) as caller:
        token = await caller.admitted(metadata={"é": [1.5, None]})
        content = json.dumps(body(metadata={"é": [1.5, None]}), ensure_ascii=False, indent=1)
        replay = await caller.http.post("/rollout", content=content, headers=headers)
        assert replay.json()["polling_lease_token"] == token


async def test_a_taken_id_is_refused_while_live_and_while_kept() -> None:
    gate = Gate()
    async with serve(create_rollout_server(backend=gated(gate))) as caller:
        token = await caller.admitted()
        live = await caller.start(label="another")
        gate.opened.set()
        await caller.result(token)
        kept = await caller.start(llm_api_key="another")
    for answer in (live, kept):
        assert answer.status_code == 409
        assert "'r-1'" in answer.json()["detail"]


async def test_simultaneous_replays_run_once() -> None:
    gate = Gate()
    async with serve(create_rollout_server(backend=gated(gate))) as caller:
        answers = await asyncio.gather(*(caller.start() for _ in range(6)))
        assert len({answer.json()["polling_lease_token"] for answer in answers}) == 1
        await until(lambda: gate.entered > 0)
        assert gate.entered == 1
        gate.opened.set()


async def test_an_id_is_free_again_after_the_retention() -> None:
    app = create_rollout_server(
        backend=LocalBackend(workflow=QuickWorkflow), result_retention_sec=0.2
    )
    async with serve(app) as caller:
        token = await caller.admitted()
        await caller.result(token)
        await asyncio.sleep(0.3)
        forgotten = await caller.poll(token)
        assert forgotten.status_code == 404
        assert "'r-1'" in forgotten.json()["detail"]
        assert await caller.admitted() != token


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"rollout_id": "a/b"}, "rollout_id"),
        ({"rollout_id": "x" * 250}, "rollout_id"),
        ({"rollout_id": "a\ud800"}, "rollout_id"),
        ({"initial_messages": "hello"}, "initial_messages"),
        ({"initial_messages": None}, "initial_messages"),
        ({"chat_completions_url": "ftp://host"}, "ftp://host"),
        ({"chat_completions_url": ""}, "chat_completions_url"),
        ({"chat_completions_url": "http://"}, "names no host"),
        ({"chat_completions_url": "embedded/unheard"}, "unheard"),
        ({"chat_completions_url": "embedded/multiply?wrong=2"}, "wrong"),
        ({"llm_api_key": ""}, "llm_api_key"),
        ({"llm_api_key": "two words", "chat_completions_url": "http://h/v1"}, "api_key"),
        ({"agent_timeout_sec": float("nan")}, "agent_timeout_sec"),
        ({"grader_timeout_sec": float("inf")}, "grader_timeout_sec"),
        ({"metadata": []}, "metadata"),
    ],
)
async def test_requests_that_cannot_run(fields: dict[str, Any], named: str) -> None:
    async with serve(create_rollout_server(backend=LocalBackend(workflow=QuickWorkflow))) as caller:
        answer = await caller.start(**{"llm_api_key": "sk-secret", **fields})
        health = (await caller.http.get("/health")).json()
    assert answer.status_code == 422, answer.text
    assert named in answer.text
    assert "sk-secret" not in answer.text
    assert health["lifecycle"]["active_rollouts"] == 0


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000, b"[]", b""])
async def test_bodies_that_are_no_request(content: bytes) -> None:
    async with serve(create_rollout_server(backend=LocalBackend(workflow=QuickWorkflow))) as caller:
        answer = await caller.http.post("/rollout", content=content, headers=JSON)
        assert answer.status_code in {400, 422}
        assert (await caller.start()).status_code == 202


async def test_no_capacity() -> None:
    gate = Gate()
    app = create_rollout_server(backend=gated(gate, max_queue_depth=2))
    async with serve(app) as caller:
        answers = await asyncio.gather(*(caller.start(f"r-{n}") for n in range(6)))
        codes = sorted(answer.status_code for answer in answers)
        assert codes == [202, 202, 202, 429, 429, 429]
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert refused.headers["retry-after"] == "5"
        gate.opened.set()


async def test_tokens_open_their_own_rollout_only() -> None:
    async with serve(create_rollout_server(backend=LocalBackend(workflow=QuickWorkflow))) as caller:
        first = await caller.admitted("first")
        second = await caller.admitted("second")
        assert first != second
        assert (await caller.poll(first, "second")).status_code == 403
        assert (await caller.poll("nonsense", "first")).status_code == 403
        assert (await caller.poll(first, "third")).status_code == 404
        assert (await caller.poll("", "first")).status_code == 422
        missing = await caller.http.get("/rollout/first/result")
        assert missing.status_code == 422
        assert (await caller.poll(second, "second")).status_code == 200


async def test_health(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_OSMOSIS_ROLLOUT_INSTANCE_ID", "pod-7")
    gate = Gate()
    async with serve(create_rollout_server(backend=gated(gate))) as caller:
        await caller.admitted()
        health = (await caller.http.get("/health")).json()
        gate.opened.set()
    assert health["status"] == "ok"
    assert health["concurrency"]["max_concurrent"] == 1
    assert health["instance_id"] == "pod-7"
    assert len(health["process_id"]) == 36
    assert health["lifecycle"] == {"accepting_rollouts": True, "active_rollouts": 1}


async def test_the_servers_own_key() -> None:
    app = create_rollout_server(backend=LocalBackend(workflow=QuickWorkflow), api_key="k-1")
    async with serve(app) as caller:
        for headers in ({}, {"Authorization": "Bearer k-2"}, {"Authorization": "k-1"}):
            for method, path in (("GET", "/health"), ("POST", "/rollout"), ("GET", "/docs")):
                answer = await caller.http.request(method, path, headers=headers)
                assert (answer.status_code, answer.json()) == (401, {"detail": "unauthorized"})
        caller.http.headers["Authorization"] = "Bearer k-1"
        assert (await caller.http.get("/health")).status_code == 200
        await caller.result(await caller.admitted())


async def test_a_server_outside_its_lifespan_admits_nothing() -> None:
    app = create_rollout_server(backend=LocalBackend(workflow=QuickWorkflow))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
        answer = await http.post("/rollout", json=body())
    assert answer.status_code == 503


@pytest.mark.parametrize(
    "wrong",
    [
        {"result_wait_timeout_sec": 0},
        {"result_wait_timeout_sec": float("nan")},
        {"polling_lease_timeout_sec": 30},
        {"polling_lease_timeout_sec": float("inf")},
        {"result_retention_sec": -1},
        {"result_retention_sec": float("nan")},
        {"api_key": "  "},
        {"api_key": "schlüssel"},
    ],
)
def test_arguments_out_of_range(wrong: dict[str, Any]) -> None:
    [name] = wrong
    with pytest.raises(ValueError, match=name):
        create_rollout_server(backend=LocalBackend(workflow=QuickWorkflow), **wrong)


def run_python(source: str) -> str:
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_needs_no_fastapi() -> None:
    assert run_python(
        "import sys, osmosis_ai.rollout.server as s\n"
        "assert 'create_rollout_server' in dir(s)\n"
        "print([m for m in ('fastapi', 'starlette', 'aiohttp') if m in sys.modules])"
    ) == "[]"  # fmt: skip


@pytest.mark.parametrize("missing", ["fastapi", "aiohttp"])
def test_a_missing_extra_is_named(missing: str) -> None:
    text = run_python(
        f"import sys; sys.modules['{missing}'] = None\n"
        "try:\n    from osmosis_ai.rollout.server import create_rollout_server\n"
        "except ModuleNotFoundError as exc:\n    print(exc)"
    )
    assert 'pip install "osmosis-ai[server]"' in text
    assert missing in text
