"""A rollout server on a real port, and a caller of its protocol."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from osmosis_ai.rollout.types import POLLING_LEASE_HEADER

PROMPT = [{"role": "user", "content": "What is 12 x 34?"}]

JSON = {"Content-Type": "application/json"}


@dataclass
class Caller:
    """Sends what a trainer sends."""

    http: httpx.AsyncClient
    server: uvicorn.Server

    async def start(self, rollout_id: str = "r-1", **fields: Any) -> httpx.Response:
        """POST /rollout."""
        content = json.dumps(body(rollout_id, **fields))
        return await self.http.post("/rollout", content=content, headers=JSON)

    async def admitted(self, rollout_id: str = "r-1", **fields: Any) -> str:
        """Start a rollout that must be admitted; returns its token."""
        answer = await self.start(rollout_id, **fields)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["polling_lease_token"])

    async def poll(self, token: str, rollout_id: str = "r-1") -> httpx.Response:
        """GET the result once."""
        headers = {POLLING_LEASE_HEADER: token}
        return await self.http.get(f"/rollout/{rollout_id}/result", headers=headers)

    async def result(self, token: str, rollout_id: str = "r-1") -> dict[str, Any]:
        """Poll until the rollout has ended."""
        while True:
            answer = await self.poll(token, rollout_id)
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            if found["status"] not in {"queued", "running", "grading"}:
                return found

    async def cancel(self, **selector: Any) -> httpx.Response:
        """POST /rollout/cancel."""
        return await self.http.post("/rollout/cancel", json=selector)


def body(rollout_id: str = "r-1", **fields: Any) -> dict[str, Any]:
    """A request that the embedded policy answers."""
    return {
        "rollout_id": rollout_id,
        "initial_messages": PROMPT,
        "label": "408",
        "chat_completions_url": "embedded/multiply",
    } | fields


async def eventually(condition: Callable[[], Awaitable[bool]], within_sec: float = 20) -> None:
    """Ask again and again until ``condition`` holds; fails when it does not in time."""
    async with asyncio.timeout(within_sec):
        while not await condition():  # noqa: ASYNC110 (a server offers no event to wait on)
            await asyncio.sleep(0.02)


@asynccontextmanager
async def serve(app: FastAPI, **headers: str) -> AsyncIterator[Caller]:
    """Run the app under uvicorn while the block runs, and shut it down with its lifespan."""
    # Listening before the server starts makes early connections wait instead of failing.
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        async with httpx.AsyncClient(
            base_url=url, trust_env=False, timeout=20, headers=headers
        ) as http:
            yield Caller(http, server)
    finally:
        server.should_exit = True
        await serving
        listener.close()
