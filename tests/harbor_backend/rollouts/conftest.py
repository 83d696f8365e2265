"""Backends on the tasks that ship with the project, and on tasks made for a test."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from osmosis_ai.rollout import ExecutionOutcome, ExecutionRequest
from sandbox_images import BASE_IMAGE

ROOT = Path(__file__).parents[3]
TEMPLATE = ROOT / "tasks" / "multiply"
DATASET = ROOT / "tasks" / "dataset"
PROJECT = ROOT / "tests" / "projects" / "adversary"
SECRET = "sk-the-real-key-of-the-policy-0123456789"

type MakeBackend = Callable[..., HarborBackend]
type MakeTask = Callable[..., Path]


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of the workflows, importable."""
    monkeypatch.syspath_prepend(str(PROJECT))
    return PROJECT


@pytest.fixture
async def make_backend(
    anyio_backend: str, artifact_root: Path, project: Path
) -> AsyncIterator[MakeBackend]:
    """Makes backends that are shut down after the test; the template task by default."""
    made: list[HarborBackend] = []

    def make(n_concurrent: int = 4, **arguments: Any) -> HarborBackend:
        arguments.setdefault("tasks_dir", TEMPLATE)
        backend = HarborBackend(orchestrator=TrialQueue(n_concurrent=n_concurrent), **arguments)
        made.append(backend)
        return backend

    yield make
    for backend in made:
        await backend.shutdown()


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """Writes a task directory."""

    def make(
        name: str = "made",
        *,
        toml: str = "",
        tests: str | None = None,
        instruction: str | None = "Do it.",
        **files: str,
    ) -> Path:
        path = tmp_path / "tasks" / name
        (path / "environment").mkdir(parents=True)
        (path / "task.toml").write_text(f'schema_version = "1.4"\n{toml}')
        dockerfile = files.pop("dockerfile", f"FROM {BASE_IMAGE}\nWORKDIR /app\n")
        (path / "environment" / "Dockerfile").write_text(dockerfile)
        if instruction is not None:
            (path / "instruction.md").write_text(instruction)
        if tests is not None:
            (path / "tests").mkdir()
            (path / "tests" / "test.sh").write_text(f"#!/bin/sh\n{tests}\n")
        for relative, text in files.items():
            (path / relative.replace("__", "/")).write_text(text)
        return path

    return make


@pytest.fixture
async def policy(anyio_backend: str) -> AsyncIterator[tuple[str, list[str]]]:
    """A policy server on the host's loopback; yields its base URL and the keys it was sent."""
    keys: list[str] = []

    async def chat(request: web.Request) -> web.Response:
        keys.append(request.headers.get("Authorization", ""))
        message = {"role": "assistant", "content": "from the policy"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"id": "1", "object": "chat.completion", "choices": [choice]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port}/v1", keys
    await runner.cleanup()


async def run(backend: HarborBackend, rollout_id: str = "r-1", **fields: Any) -> ExecutionOutcome:
    """Run one rollout with a prompt and a label."""
    fields.setdefault("prompt", [{"role": "user", "content": "hello"}])
    fields.setdefault("label", "4")
    return await backend.execute(ExecutionRequest(id=rollout_id, **fields))


async def until(condition: Callable[[], object], timeout_sec: float = 30) -> None:
    """Wait until a condition of the engine or the backend holds; neither announces it."""
    async with asyncio.timeout(timeout_sec):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
