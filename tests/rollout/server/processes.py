"""Starting, killing and restarting server processes."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from osmosis_ai.rollout.types import POLLING_LEASE_HEADER
from tests.rollout.server.serving import body, eventually

_ROOT = Path(__file__).parents[3]


@dataclass
class ServerProcess:
    """One server, which may be killed and started again on the same port."""

    directory: Path
    environment: dict[str, str]
    port: int = field(default_factory=lambda: free_port())
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What it wrote."""
        return (self.directory / f"log-{self.port}").read_text()

    async def start(self) -> None:
        """Start it and wait until it answers."""
        environment = {**os.environ, **self.environment, "TEST_PORT": str(self.port)}
        environment["PYTHONPATH"] = str(_ROOT)
        environment.setdefault("_OSMOSIS_ROLLOUT_ARTIFACT_ROOT", str(self.directory / "root"))
        self.process = self._spawn(environment)
        async with client(self) as http:

            async def answers() -> bool:
                assert self.process is not None
                assert self.process.poll() is None, self.log
                try:
                    await http.get("/health")
                except httpx.TransportError:
                    return False
                return True

            await eventually(answers, 60)

    def _spawn(self, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.directory / f"log-{self.port}").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.rollout.server.server_process"],
                cwd=self.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """End it as a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    async def exited(self) -> int:
        """Wait for its exit code."""
        assert self.process is not None
        return await asyncio.to_thread(self.process.wait, 60)

    def runs(self) -> list[str]:
        """The gates of all runs so far, of every server of the directory."""
        log = self.directory / "runs.log"
        return log.read_text().split() if log.exists() else []


@asynccontextmanager
async def server_process(directory: Path, **environment: str) -> AsyncIterator[ServerProcess]:
    """A running server process for the block."""
    server = ServerProcess(directory, environment)
    await server.start()
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()


def client(server: ServerProcess, **headers: str) -> httpx.AsyncClient:
    """A caller of that server."""
    return httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=30, headers=headers)


def waiting_body(gate: Path, rollout_id: str = "r-1", **fields: Any) -> dict[str, Any]:
    """A request whose workflow waits for the file ``gate``."""
    prompt = [{"role": "user", "content": str(gate)}]
    return body(rollout_id, initial_messages=prompt, **fields)


async def start(http: httpx.AsyncClient, request: dict[str, Any]) -> str:
    """Start a rollout that must be admitted; returns its token."""
    answer = await http.post("/rollout", json=request)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["polling_lease_token"])


async def poll(http: httpx.AsyncClient, token: str, rollout_id: str = "r-1") -> httpx.Response:
    """Poll once."""
    headers = {POLLING_LEASE_HEADER: token}
    return await http.get(f"/rollout/{rollout_id}/result", headers=headers)


async def result(http: httpx.AsyncClient, token: str, rollout_id: str = "r-1") -> bytes:
    """Poll until the rollout has ended; returns the answer's bytes."""
    async with asyncio.timeout(60):
        while True:
            answer = await poll(http, token, rollout_id)
            assert answer.status_code == 200, answer.text
            if answer.json()["status"] not in {"queued", "running", "grading"}:
                return answer.content


async def until_status(http: httpx.AsyncClient, status: str, rollout_id: str = "r-1") -> None:
    """Wait until a rollout has a status."""

    async def has_it() -> bool:
        found = (await http.get(f"/rollout/{rollout_id}/status")).json()
        return bool(found.get("status") == status)

    await eventually(has_it, 30)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
