"""Both protocols at one door: trainers that are called back, beside those that poll."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from osmosis_ai.rollout import (
    GraderCompleteRequest,
    LocalBackend,
    RolloutCompleteRequest,
)
from osmosis_ai.rollout.server import create_rollout_server
from tests.local_backend.gates import (
    Gate,
    GatedWorkflow,
    QuickGrader,
    QuickWorkflow,
    until,
    workflow_config,
)
from tests.rollout.server.callbacks.receiver import Receiver, receiver
from tests.rollout.server.processes import (
    client,
    server_process,
    until_status,
    waiting_body,
)
from tests.rollout.server.serving import Caller, body, eventually, serve
from tests.rollout.server.workflows import FailingGrader, MultiplyGrader, MultiplyWorkflow

pytestmark = pytest.mark.usefixtures("artifact_root")


@pytest.fixture
async def trainer() -> AsyncIterator[Receiver]:
    """A trainer's callback routes."""
    async with receiver() as running:
        yield running


def called_back(trainer: Receiver, **fields: Any) -> dict[str, Any]:
    """What trainers of the first generation send."""
    request = body(
        completion_callback_url=f"{trainer.url}/completion",
        grader_callback_url=f"{trainer.url}/grader",
        controller_api_key="controller-key",
    )
    return {**request, **fields}


def app(store_url: str | None = None, **backend: Any) -> Any:
    arguments = {"workflow": MultiplyWorkflow, "grader": MultiplyGrader} | backend
    return create_rollout_server(
        backend=LocalBackend(**arguments), store_url=store_url, store_key="a store key"
    )


async def send(caller: Caller, request: dict[str, Any]) -> None:
    answer = await caller.http.post("/rollout", json=request)
    assert (answer.status_code, answer.json()) == (202, {}), answer.text


async def test_both_callbacks_in_their_order(store_url: str, trainer: Receiver) -> None:
    async with serve(app(store_url)) as caller:
        await send(caller, called_back(trainer, extra_fields={"step": 1}))
        await until(lambda: len(trainer.received) == 2)
        status = (await caller.http.get("/rollout/r-1/status")).json()
    completion, grader = trainer.received
    assert (completion.path, grader.path) == ("/completion", "/grader")
    assert completion.headers["Authorization"] == "Bearer controller-key"
    done = json.loads(completion.body)
    RolloutCompleteRequest.model_validate(done)
    assert done == {
        "rollout_id": "r-1",
        "status": "success",
        "extra_fields": None,
        "err_message": None,
        "err_category": None,
    }
    graded = json.loads(grader.body)
    GraderCompleteRequest.model_validate(graded)
    assert (graded["status"], graded["sample"]["reward"]) == ("success", 1.0)
    assert (status["status"], status["protocol"], status["reward"]) == ("success", "callback", 1.0)


async def test_a_request_without_an_id_gets_one(trainer: Receiver) -> None:
    async with serve(app()) as caller:
        request = called_back(trainer)
        del request["rollout_id"]
        await send(caller, request)
        await send(caller, request)
        await until(lambda: len(trainer.received) == 4)
    assert len({json.loads(found.body)["rollout_id"] for found in trainer.received}) == 2


async def test_a_replay_is_called_back_once(trainer: Receiver) -> None:
    async with serve(app()) as caller:
        for _ in range(3):
            await send(caller, called_back(trainer))
        await until(lambda: len(trainer.received) == 2)
        await send(caller, called_back(trainer))
        another = await caller.http.post("/rollout", json=called_back(trainer, label="x"))
        assert another.status_code == 409
        await asyncio.sleep(0.3)
    assert [found.path for found in trainer.received] == ["/completion", "/grader"]


async def test_without_a_grader_url_nothing_is_graded(trainer: Receiver) -> None:
    async with serve(app(grader=FailingGrader)) as caller:
        await send(caller, called_back(trainer, grader_callback_url=None))
        await until(lambda: len(trainer.received) == 1)

        async def ended() -> bool:
            found = (await caller.http.get("/rollout/r-1/status")).json()
            return bool(found["status"] == "success")

        await eventually(ended)
    assert [found.path for found in trainer.received] == ["/completion"]


async def test_grading_waits_for_the_completion_callback(trainer: Receiver) -> None:
    graded = Gate()
    trainer.script = ["hang"]
    async with serve(app(workflow=QuickWorkflow, grader=QuickGrader)) as caller:
        await send(caller, called_back(trainer))
        await until(lambda: len(trainer.received) == 1)
        await asyncio.sleep(0.2)
        status = (await caller.http.get("/rollout/r-1/status")).json()
        assert status["status"] == "running"
        assert graded.entered == 0
        await caller.cancel(ids=["r-1"])
        trainer.always = 200


async def test_a_failed_grading_is_told(trainer: Receiver) -> None:
    async with serve(app(grader=FailingGrader)) as caller:
        await send(caller, called_back(trainer))
        await until(lambda: len(trainer.received) == 2)
    graded = json.loads(trainer.received[1].body)
    assert (graded["status"], graded["err_category"]) == ("failure", "agent_error")
    assert graded["sample"]["reward"] is None


async def test_a_cancelled_rollout_is_told_of_both_phases(trainer: Receiver) -> None:
    gate = Gate()
    gated = app(workflow=GatedWorkflow, workflow_config=workflow_config(gate))
    async with serve(gated) as caller:
        await send(caller, called_back(trainer))
        await until(lambda: gate.inside == 1)
        await caller.cancel(all=True)
        await until(lambda: len(trainer.received) == 2)
    completion, grader = (json.loads(found.body) for found in trainer.received)
    assert (completion["status"], grader["status"]) == ("cancelled", "failure")


async def test_a_cancelled_rollouts_result_waits_for_no_trainer(trainer: Receiver) -> None:
    trainer.always = "hang"
    gate = Gate()
    async with serve(app(workflow=GatedWorkflow, workflow_config=workflow_config(gate))) as caller:
        await send(caller, called_back(trainer))
        await until(lambda: gate.inside == 1)
        await caller.cancel(ids=["r-1"])

        async def cancelled() -> bool:
            status = (await caller.http.get("/rollout/r-1/status")).json()["status"]
            return bool(status == "cancelled")

        await eventually(cancelled)
        trainer.always = None


async def test_a_rollout_that_is_handed_over_is_told_nothing(trainer: Receiver) -> None:
    gate = Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate))
    async with serve(create_rollout_server(backend=backend, shutdown_grace_sec=0.1)) as caller:
        await send(caller, called_back(trainer, on_interrupt="rerun"))
        await until(lambda: gate.inside == 1)
    assert gate.inside == 0
    assert trainer.received == []


@pytest.mark.parametrize("where", ["completion", "grader"])
async def test_a_report_in_the_answer(trainer: Receiver, artifact_root: Path, where: str) -> None:
    call = {"prompt_tokens": 11, "completion_tokens": 5, "model_name": "policy-7"}
    report = {"samples": {"a": {"llm_call_metrics": [call, call]}}}
    answer = web.json_response({"trajectory": report})
    trainer.script = [answer] if where == "completion" else [200, answer]
    async with serve(app()) as caller:
        await send(caller, called_back(trainer))
        await until(lambda: len(trainer.received) == 2)

        async def is_saved() -> bool:
            path = artifact_root / "r-1" / "trajectory.json"
            if not path.exists():
                return False
            steps = json.loads(path.read_text())["steps"]
            return [step.get("metrics", {}).get("prompt_tokens") for step in steps[1:]] == [11, 11]

        await eventually(is_saved)


@pytest.mark.parametrize(
    ("left_out", "polling", "callback"),
    [
        (["rollout_id"], ["rollout_id"], ["completion_callback_url"]),
        (
            ["rollout_id", "chat_completions_url"],
            ["rollout_id", "chat_completions_url"],
            ["completion_callback_url", "chat_completions_url"],
        ),
        (
            ["initial_messages"],
            ["initial_messages"],
            ["completion_callback_url", "initial_messages"],
        ),
    ],
)
async def test_a_request_that_fits_neither_protocol(
    left_out: list[str], polling: list[str], callback: list[str]
) -> None:
    request = {name: value for name, value in body().items() if name not in left_out}
    async with serve(app()) as caller:
        answer = await caller.http.post("/rollout", json=request)
    assert answer.status_code == 422
    assert answer.json()["protocols"] == {
        "polling": {"missing": polling},
        "callback": {"missing": callback},
    }


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"completion_callback_url": "ftp://h/x"}, "completion_callback_url"),
        ({"grader_callback_url": "http://u:p@h/x"}, "grader_callback_url"),
        ({"controller_api_key": "k\n"}, "controller_api_key"),
        ({"on_interrupt": "maybe"}, "on_interrupt"),
        ({"rollout_id": "rollouts.db"}, "rollout_id"),
        ({"rollout_id": "Rollouts.db-wal"}, "rollout_id"),
        ({"rollout_id": ".replaced"}, "rollout_id"),
    ],
)
async def test_what_cannot_be_served(trainer: Receiver, fields: dict[str, Any], named: str) -> None:
    async with serve(app()) as caller:
        answer = await caller.http.post("/rollout", json=called_back(trainer, **fields))
    assert answer.status_code == 422
    assert named in answer.text
    assert not trainer.received


async def test_callbacks_resume_after_a_crash(
    tmp_path: Path, store_url: str, trainer: Receiver
) -> None:
    gate = tmp_path / "gate"
    gate.write_text("four")
    trainer.always = 503
    environment = {"OSMOSIS_STORE_URL": store_url, "OSMOSIS_STORE_KEY": "a store key"}
    async with server_process(tmp_path, **environment) as server, client(server) as http:
        fields = called_back(trainer)
        request = waiting_body(gate) | {
            name: f"{fields[name]}?token=url-key" if "callback" in name else fields[name]
            for name in fields
            if "callback" in name or "controller" in name
        }
        assert (await http.post("/rollout", json=request)).status_code == 202
        await until(lambda: len(trainer.received) >= 2)
        server.kill()
        trainer.received.clear()
        trainer.always = 200
        await server.start()
        await until(lambda: len(trainer.received) == 2)
        await until_status(http, "failure")
        server.kill()
        await server.start()
        await asyncio.sleep(1)
    completion, grader = trainer.received
    paths = (completion.path, grader.path)
    assert paths == ("/completion?token=url-key", "/grader?token=url-key")
    assert json.loads(completion.body)["status"] == "success"  # the very bytes of before
    graded = json.loads(grader.body)
    assert (graded["status"], graded["err_category"]) == ("failure", None)
    assert "[interrupted]" in graded["err_message"]
    assert grader.headers["Authorization"] == "Bearer controller-key"
    for path in tmp_path.rglob("rollouts.db*"):
        assert b"controller-key" not in path.read_bytes()
        assert b"url-key" not in path.read_bytes()
