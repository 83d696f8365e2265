"""The client and this project's server, over connections that break."""

import asyncio

import pytest
from fastapi import FastAPI

from osmosis_ai.rollout import LocalBackend
from osmosis_ai.rollout.client import RolloutClient, RolloutHandle, RolloutProtocolError
from osmosis_ai.rollout.server import create_rollout_server
from tests.local_backend.gates import (
    Gate,
    GatedGrader,
    GatedWorkflow,
    grader_config,
    until,
    workflow_config,
)
from tests.rollout.client.cutting_proxy import cutting_proxy
from tests.rollout.server.serving import PROMPT, serve

pytestmark = pytest.mark.usefixtures("artifact_root")

MODEL = "embedded/multiply"


def gated(workflow: Gate, grader: Gate) -> FastAPI:
    backend = LocalBackend(
        workflow=GatedWorkflow,
        workflow_config=workflow_config(workflow),
        grader=GatedGrader,
        grader_config=grader_config(grader),
    )
    return create_rollout_server(backend=backend)


async def test_a_rollout_over_connections_that_are_cut() -> None:
    agent, grader = Gate(), Gate()
    async with (
        serve(gated(agent, grader)) as caller,
        cutting_proxy(str(caller.http.base_url).rstrip("/")) as proxy,
        RolloutClient(proxy.url) as client,
    ):
        handle = await client.run_rollout_async(PROMPT, MODEL, "r é", label="4")
        changes = asyncio.create_task(statuses(handle))
        assert await handle.wait_for_running() == "running"
        proxy.cut()
        await asyncio.sleep(0.3)
        proxy.cut()
        agent.opened.set()
        assert await handle.wait_for_grading() == "grading"
        proxy.cut()
        grader.opened.set()
        result = await handle
        assert (await changes)[-1] == "success"
    assert result.status == "success"
    assert result.sample is not None
    assert result.sample.reward == 1.0
    assert agent.entered == 1


async def statuses(handle: RolloutHandle) -> list[str]:
    return [change.status async for change in handle]


async def test_an_admission_whose_answer_is_lost_runs_once() -> None:
    agent, grader = Gate(), Gate()
    agent.opened.set()
    grader.opened.set()
    async with (
        serve(gated(agent, grader)) as caller,
        cutting_proxy(str(caller.http.base_url).rstrip("/")) as proxy,
        RolloutClient(proxy.url) as client,
    ):
        proxy.swallow = 1
        result = await client.run_rollout(PROMPT, MODEL, "r-1", label="4")
        assert proxy.swallowed == 1
    assert result.status == "success"
    assert agent.entered == 1


async def test_many_at_once_and_an_id_that_is_taken() -> None:
    agent, grader = Gate(), Gate()
    async with serve(gated(agent, grader)) as caller:
        url = str(caller.http.base_url)
        async with RolloutClient(url) as client, asyncio.TaskGroup() as group:
            runs = [
                group.create_task(client.run_rollout(PROMPT, MODEL, f"r-{n}", label="4"))
                for n in range(150)
            ]
            await until(lambda: agent.inside == 150)
            with pytest.raises(RolloutProtocolError) as caught:
                await client.run_rollout(PROMPT, MODEL, "r-0", label="5")
            assert caught.value.status_code == 409
            agent.opened.set()
            grader.opened.set()
        assert {run.result().status for run in runs} == {"success"}


async def test_cancelling_and_waiting_until_idle() -> None:
    agent, grader = Gate(), Gate()
    async with (
        serve(gated(agent, grader)) as caller,
        RolloutClient(str(caller.http.base_url)) as client,
    ):
        process_id = (await client.health())["process_id"]
        handle = await client.run_rollout_async(PROMPT, MODEL)
        await handle.wait_for_running()
        answer = await client.cancel_rollout(handle.rollout_id)
        assert answer.dispositions == {handle.rollout_id: "cancelled_running"}
        assert (await handle).status == "cancelled"
        await client.wait_idle(poll_interval_sec=0.05, process_id=process_id)


async def test_the_key_of_the_server() -> None:
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(Gate()))
    app = create_rollout_server(backend=backend, api_key="control")
    async with serve(app) as caller:
        url = str(caller.http.base_url)
        async with RolloutClient(url, api_key="control") as client:
            assert (await client.health())["status"] == "ok"
        async with RolloutClient(url) as client:
            with pytest.raises(RolloutProtocolError) as caught:
                await client.run_rollout(PROMPT, MODEL)
    assert caught.value.status_code == 401
