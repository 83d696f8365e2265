"""The probe names the hop at which the way to the gateway ends. Real servers, a real process."""

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio.to_thread
import pytest

from osmosis_ai.gateway import Endpoint, Gateway
from osmosis_ai.rollout.container import probe


async def walk(url: str, token: str) -> dict[str, str | None]:
    """Run the probe as a sandbox does: its text, in an interpreter without site-packages."""
    source = Path(probe.__file__).read_text()
    command = [sys.executable, "-I", "-S", "-c", source, url]
    env = {**os.environ, probe.TOKEN_VARIABLE: token}
    done = await anyio.to_thread.run_sync(
        lambda: subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    )
    found: dict[str, str | None] = json.loads(done.stdout)
    return found


@pytest.fixture
async def endpoint(anyio_backend: str) -> AsyncIterator[Endpoint]:
    async with Gateway() as gateway, gateway.open("r-1", None) as endpoint:
        yield endpoint


@contextmanager
def serving(status: int, body: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/rollouts/r-1/v1"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_the_gateway_is_reached(endpoint: Endpoint) -> None:
    assert await walk(endpoint.url, endpoint.token) == {"hop": None, "detail": ""}
    assert endpoint.calls == []


async def test_a_token_of_another_rollout(endpoint: Endpoint) -> None:
    found = await walk(endpoint.url, "not-it")
    assert found["hop"] == "gateway"
    assert "401 invalid_api_key" in str(found["detail"])
    assert "not-it" not in str(found)


async def test_a_rollout_that_is_not_there(endpoint: Endpoint) -> None:
    found = await walk(endpoint.url.replace("r-1", "r-2"), endpoint.token)
    assert found["hop"] == "gateway"
    assert "rollout_not_found" in str(found["detail"])


async def test_a_name_that_does_not_resolve() -> None:
    found = await walk("http://engine.invalid:8900/rollouts/r/v1", "t")
    assert found["hop"] == "name"
    assert "engine.invalid" in str(found["detail"])


async def test_a_port_where_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = await walk(f"http://127.0.0.1:{port}/rollouts/r/v1", "t")
    assert found["hop"] == "connect"
    assert f"127.0.0.1 port {port}" in str(found["detail"])


async def test_no_tls_where_it_is_expected(endpoint: Endpoint) -> None:
    found = await walk(endpoint.url.replace("http:", "https:"), endpoint.token)
    assert found["hop"] == "tls"
    assert ssl.OPENSSL_VERSION  # the interpreter that probes has TLS at all


@pytest.mark.parametrize(
    ("status", "body"),
    [(502, b"<h1>Bad gateway</h1>"), (200, b"welcome"), (404, b'{"detail": "Not Found"}')],
)
async def test_something_else_answers(status: int, body: bytes) -> None:
    with serving(status, body) as url:
        found = await walk(url, "t")
    assert found["hop"] == "http"
    assert str(status) in str(found["detail"])
