"""The server's process: started, killed, started again."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from tests.experiments.server_kill.server_process import API_KEY, ROOT

AUTHORIZED = {"Authorization": f"Bearer {API_KEY}"}
_START_SEC = 120.0


class Victim:
    """One server after the other, on the same port and the same files."""

    def __init__(self, directory: Path, backend: str, port: int) -> None:
        self._directory = directory
        self._backend = backend
        self._port = port
        self._process: asyncio.subprocess.Process | None = None
        self.url = f"http://127.0.0.1:{port}"
        self.incarnation = 0
        self.log = directory / "server.log"
        self.starts: list[float] = []

    async def spawn(self) -> None:
        """Start a process; it may not answer yet."""
        self.incarnation += 1
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.experiments.server_kill.server_process",
                *(str(self._port), self._backend, str(self._directory)),
                cwd=ROOT,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ
                | {
                    "PYTHONPATH": str(ROOT),
                    "_OSMOSIS_ROLLOUT_ARTIFACT_ROOT": str(self._directory / "rollouts"),
                },
            )

    async def answering(self) -> None:
        """Return when the server answers.

        Raises:
            RuntimeError: it ended by itself, or does not come up.
        """
        assert self._process is not None
        began = time.monotonic()
        async with aiohttp.ClientSession(headers=AUTHORIZED) as http:
            while time.monotonic() - began < _START_SEC:
                if self._process.returncode is not None:
                    raise RuntimeError(f"the server ended: {self._tail()}")
                with suppress(aiohttp.ClientError, TimeoutError):
                    async with http.get(
                        f"{self.url}/health", timeout=aiohttp.ClientTimeout(2)
                    ) as answer:
                        if answer.status == 200:
                            self.starts.append(time.monotonic() - began)
                            return
                await asyncio.sleep(0.02)
        raise RuntimeError(f"the server does not come up: {self._tail()}")

    async def kill(self) -> None:
        """SIGKILL it, and whatever it started in its own group.

        Raises:
            RuntimeError: it had ended by itself.
        """
        assert self._process is not None
        if self._process.returncode is not None:
            raise RuntimeError(f"the server ended: {self._tail()}")
        self._process.kill()
        await self._process.wait()
        self._process = None

    async def stop(self) -> int:
        """SIGTERM it; returns its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = await self._process.wait()
        self._process = None
        return code

    def _tail(self) -> str:
        return self.log.read_bytes()[-3000:].decode(errors="replace")


@asynccontextmanager
async def victim(directory: Path, backend: str, port: int) -> AsyncIterator[Victim]:
    """A server that does not outlive the block."""
    server = Victim(directory, backend, port)
    try:
        yield server
    finally:
        if server._process is not None and server._process.returncode is None:
            server._process.kill()
            await server._process.wait()
