"""Who is let in, and what of a request is read at all."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.types import Message

from osmosis_ai.rollout import LocalBackend
from osmosis_ai.rollout.server import create_rollout_server, limits
from osmosis_ai.rollout.types import POLLING_LEASE_HEADER
from tests.local_backend.gates import QuickWorkflow
from tests.rollout.server.serving import Caller, body, serve

pytestmark = pytest.mark.usefixtures("artifact_root")

CONTROL = {"Authorization": "Bearer control-key"}
READ = {"Authorization": "Bearer read-key"}


def app(**arguments: Any) -> Any:
    return create_rollout_server(backend=LocalBackend(workflow=QuickWorkflow), **arguments)


@pytest.fixture
async def guarded() -> AsyncIterator[Caller]:
    """A server with both keys."""
    async with serve(app(api_key="control-key", read_api_key="read-key")) as caller:
        yield caller


READS = [
    "/health",
    "/metrics",
    "/rollouts",
    "/rollout/r-1/status",
    "/rollout/r-1/trajectory",
    "/rollout/r-1/artifacts",
    "/openapi.json",
]


@pytest.mark.parametrize("path", READS)
async def test_what_only_reads_needs_one_of_the_keys(guarded: Caller, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "read-key"}):
        refused = await guarded.http.get(path, headers=headers)
        assert (refused.status_code, refused.json()) == (401, {"detail": "unauthorized"})
    token = (await guarded.http.post("/rollout", json=body(), headers=CONTROL)).json()
    await guarded.poll(token["polling_lease_token"])
    for headers in (READ, CONTROL):
        answer = await guarded.http.get(path, headers=headers)
        assert answer.status_code in {200, 404}, answer.text


@pytest.mark.parametrize(
    ("path", "sent"), [("/rollout", body()), ("/rollout/cancel", {"all": True})]
)
async def test_what_changes_needs_the_control_key(
    guarded: Caller, path: str, sent: dict[str, Any]
) -> None:
    assert (await guarded.http.post(path, json=sent)).status_code == 401
    refused = await guarded.http.post(path, json=sent, headers=READ)
    assert refused.status_code == 403
    assert "control key" in refused.json()["detail"]
    assert (await guarded.http.post(path, json=sent, headers=CONTROL)).status_code in {200, 202}


async def test_a_poll_needs_a_key_and_the_token_of_its_lease(guarded: Caller) -> None:
    answer = await guarded.http.post("/rollout", json=body(grade=False), headers=CONTROL)
    lease = {POLLING_LEASE_HEADER: answer.json()["polling_lease_token"]}
    assert (await guarded.http.get("/rollout/r-1/result", headers=lease)).status_code == 401
    for key in (READ, CONTROL):
        polled = await guarded.http.get("/rollout/r-1/result", headers={**lease, **key})
        assert polled.status_code == 200
    wrong = {POLLING_LEASE_HEADER: "guessed", **CONTROL}
    assert (await guarded.http.get("/rollout/r-1/result", headers=wrong)).status_code == 403
    assert (await guarded.http.get("/rollout/r-2/result", headers=wrong)).status_code == 404


@pytest.mark.parametrize(
    ("peer", "served"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.7", False),
        ("::ffff:10.0.0.7", False),
        ("2001:db8::1", False),
    ],
)
async def test_without_a_key_this_machine_only(peer: str, served: bool) -> None:
    transport = httpx.ASGITransport(app(), client=(peer, 1234))
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
        answer = await http.get("/health")
    assert answer.status_code == (200 if served else 403)
    if not served:
        assert "API key" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("origin", "served"),
    [
        ("http://localhost:3000", True),
        ("https://example.com", False),
        ("null", False),
        ("[", False),
    ],
)
async def test_without_a_key_no_pages_of_other_sites(origin: str, served: bool) -> None:
    async with serve(app()) as caller:
        answer = await caller.http.get("/health", headers={"Origin": origin})
    assert answer.status_code == (200 if served else 403)
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_it_says_so_at_start(caplog: pytest.LogCaptureFixture) -> None:
    async with serve(app()) as caller:
        await caller.http.get("/health")
        assert "only this machine" in caplog.text
    caplog.clear()
    async with serve(app(api_key="k")) as caller:
        await caller.http.get("/health")
        assert "only this machine" not in caplog.text


async def test_keys_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OSMOSIS_ROLLOUT_API_KEY", "control-key")
    monkeypatch.setenv("OSMOSIS_ROLLOUT_READ_API_KEY", "read-key")
    async with serve(app()) as caller:
        assert (await caller.http.get("/health")).status_code == 401
        assert (await caller.http.get("/health", headers=READ)).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"read_api_key": "r"}, "api_key"),
        ({"api_key": "same", "read_api_key": "same"}, "read_api_key"),
        ({"api_key": "k", "read_api_key": " "}, "read_api_key"),
        ({"store_url": "postgresql:///x"}, "OSMOSIS_STORE_KEY"),
        ({"store_url": "mysql://h/x"}, "store_url"),
        ({"store_url": "sqlite://"}, "store_url"),
        ({"store_url": "nonsense"}, "store_url"),
        ({"record_retention_sec": -1}, "record_retention_sec"),
        ({"max_records": 0}, "max_records"),
        ({"shutdown_grace_sec": float("inf")}, "shutdown_grace_sec"),
        ({"takeover_sec": 0}, "takeover_sec"),
    ],
)
def test_arguments_that_do_not_fit(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        app(**arguments)


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_that_is_too_large(chunked: bool) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b" " * 1024

    async with serve(app(max_request_bytes=32 * 1024)) as caller:
        content: Any = chunks() if chunked else b" " * 64 * 1024
        answer = await caller.http.post("/rollout", content=content)
        assert answer.status_code == 413
        assert "32768" in answer.json()["detail"]
        fits = body(label="x" * 16 * 1024)
        assert (await caller.http.post("/rollout", json=fits)).status_code == 202


async def test_a_body_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_SEC", 0.3)
    async with serve(app()) as caller:
        host, port = caller.http.base_url.host, caller.http.base_url.port
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"POST /rollout HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        async with asyncio.timeout(5):
            answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 408")
        assert (await caller.start()).status_code == 202


async def test_requests_that_arrive_together_let_others_in_between() -> None:
    """A loop that looked into all of them at once would serve nobody else meanwhile."""
    loops = 0
    seen: list[int] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["body"] == b"{}"
        seen.append(loops)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Message) -> None:
        raise AssertionError("nothing is refused")

    async def count() -> None:
        nonlocal loops
        while len(seen) < 40:
            loops += 1
            await asyncio.sleep(0)

    scope = {"type": "http", "headers": [(b"content-length", b"2")]}
    bounded = limits.BoundBodies(inner, max_bytes=100)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(count())
        for _ in range(40):
            group.create_task(bounded(scope, receive, send))
    assert max(Counter(seen).values()) <= 8
    assert loops >= 5


@pytest.mark.parametrize(
    ("length", "body", "stays"),
    [
        ("Content-Length: 99999999", b"{", False),
        ("Transfer-Encoding: chunked", b"", False),
        ("Content-Length: 2", b"{}", True),
    ],
)
async def test_a_refused_caller_is_not_read(length: str, body: bytes, stays: bool) -> None:
    request = f"POST /rollout HTTP/1.1\r\nHost: x\r\n{length}\r\n\r\n".encode() + body
    async with serve(app(api_key="k")) as caller, asyncio.timeout(5):
        reader, writer = await asyncio.open_connection(
            caller.http.base_url.host, caller.http.base_url.port
        )
        for _ in range(2 if stays else 1):
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 401")
            assert (b"connection: close" in head.lower()) is not stays
            assert await reader.readuntil(b"}") == b'{"detail":"unauthorized"}'
        if not stays:
            assert await reader.read() == b""
        writer.close()
