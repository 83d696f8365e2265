"""A poll that says what its caller has seen already."""

import asyncio

import pytest

from osmosis_ai.rollout import LocalBackend
from osmosis_ai.rollout.server import create_rollout_server
from osmosis_ai.rollout.types import POLLING_LEASE_HEADER
from tests.local_backend.gates import Gate, GatedWorkflow, workflow_config
from tests.rollout.server.serving import serve

pytestmark = pytest.mark.usefixtures("artifact_root")


@pytest.mark.parametrize("path", ["/rollout/r-1/result", "/rollout/r%2D1/result"])
async def test_a_change_that_was_told_to_nobody_is_told_again(path: str) -> None:
    gate = Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate))
    app = create_rollout_server(
        backend=backend, result_wait_timeout_sec=3, polling_lease_timeout_sec=30
    )
    async with serve(app) as caller:
        token = await caller.admitted(grade=False)
        headers = {POLLING_LEASE_HEADER: token}

        async def poll(seen: str) -> str:
            answer = await caller.http.get(f"{path}?seen={seen}", headers=headers)
            assert answer.status_code == 200, answer.text
            return str(answer.json()["status"])

        assert await poll("queued") == "running"
        async with asyncio.timeout(1):
            assert await poll("queued") == "running"
        waiting = asyncio.create_task(poll("running"))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        gate.opened.set()
        assert await waiting == "success"
        assert await poll("success") == "success"
        odd = await caller.http.get(f"{path}?seen=never", headers=headers)
        assert odd.status_code == 422
