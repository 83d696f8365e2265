"""One rollout from admission to its files on disk, over real HTTP with the real framework."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from osmosis_ai.rollout import LocalBackend, RolloutInitResponse, RolloutResultResponse
from osmosis_ai.rollout.server import create_rollout_server
from tests.local_backend.gates import (
    Gate,
    GatedGrader,
    GatedWorkflow,
    grader_config,
    until,
    workflow_config,
)
from tests.rollout.policy import Policy
from tests.rollout.server.serving import PROMPT, serve
from tests.rollout.server.workflows import (
    BytesWorkflow,
    DroppingGrader,
    FailingGrader,
    MultiplyGrader,
    MultiplyWorkflow,
    OddWorkflow,
)

pytestmark = pytest.mark.usefixtures("artifact_root")


def multiply_app(**arguments: Any) -> FastAPI:
    backend = LocalBackend(workflow=MultiplyWorkflow, grader=MultiplyGrader)
    return create_rollout_server(backend=backend, **arguments)


async def test_a_graded_rollout(artifact_root: Path) -> None:
    async with serve(multiply_app()) as caller:
        answer = await caller.start(metadata={"row": 7}, extra_fields={"step": 3})
        assert answer.status_code == 202
        admission = RolloutInitResponse.model_validate(answer.json())
        assert admission.rollout_id == "r-1"
        assert admission.status == "queued"
        assert (admission.result_wait_timeout_sec, admission.polling_lease_timeout_sec) == (30, 120)
        assert len(admission.polling_lease_token) == 43

        result = await caller.result(admission.polling_lease_token)
        again = (await caller.poll(admission.polling_lease_token)).json()
    assert result == again
    RolloutResultResponse.model_validate(result)
    assert (result["status"], result["err_message"], result["err_category"]) == (
        "success", None, None,
    )  # fmt: skip
    sample = result["sample"]
    assert sample["reward"] == 1.0
    assert sample["label"] == "408"
    assert sample["metrics"].keys() == {"length"}
    assert "trajectory_messages" not in sample
    assert [m["role"] for m in sample["messages"]] == ["user", "assistant", "user", "assistant"]

    saved = json.loads((artifact_root / "r-1" / "trajectory.json").read_text())
    assert [step["source"] for step in saved["steps"]] == ["user", "agent", "agent"]
    assert saved["steps"][1]["tool_calls"][0]["arguments"] == {"a": 12, "b": 34}
    # The gateway counted the tokens of both calls, so each step has its own.
    assert all(step["metrics"]["prompt_tokens"] > 0 for step in saved["steps"][1:])
    assert saved["extra"]["osmosis"]["reward"] == 1.0
    assert saved["extra"]["osmosis"]["request_metadata"] == {"row": 7}
    assert saved["extra"]["osmosis"]["request_extra_fields"] == {"step": 3}
    assert (artifact_root / "r-1" / "artifacts" / "run.log").read_text() == "started\n"


async def test_many_at_once_keep_their_own_results() -> None:
    async with serve(multiply_app()) as caller:

        async def run(number: int) -> float:
            name = f"r {number} é"
            prompt = [{"role": "user", "content": f"What is {number} x 3?"}]
            label = str(number * 3) if number % 2 else "no"
            token = await caller.admitted(name, initial_messages=prompt, label=label)
            return float((await caller.result(token, name))["sample"]["reward"])

        rewards = await asyncio.gather(*(run(number) for number in range(8)))
    assert rewards == [0.0, 1.0] * 4


async def test_an_upstream_over_http_gets_the_real_key(policy: Policy) -> None:
    async with serve(multiply_app()) as caller:
        url = {"chat_completions_url": policy.url, "llm_api_key": "sk-real"}
        token = await caller.admitted(**url, grade=False)
        result = await caller.result(token)
    assert result["status"] == "success"
    assert set(policy.authorizations) == {"Bearer sk-real"}
    assert "sk-real" not in json.dumps(result)


async def test_files_are_there_before_the_result(artifact_root: Path) -> None:
    async with serve(multiply_app()) as caller:
        for number in range(5):
            name = f"r-{number}"
            await caller.result(await caller.admitted(name), name)
            assert (artifact_root / name / "trajectory.json").is_file()


async def test_a_poll_returns_at_every_change() -> None:
    gate, grading = Gate(), Gate()
    backend = LocalBackend(
        workflow=GatedWorkflow,
        workflow_config=workflow_config(gate, limit=1),
        grader=GatedGrader,
        grader_config=grader_config(grading),
    )
    async with serve(create_rollout_server(backend=backend)) as caller:
        first = await caller.admitted("first")
        second = await caller.admitted("second")
        assert (await caller.poll(first, "first")).json() == {
            "rollout_id": "first",
            "status": "running",
            "sample": None,
            "err_message": None,
            "err_category": None,
        }
        waiting = asyncio.create_task(caller.poll(second, "second"))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        gate.opened.set()
        assert (await waiting).json()["status"] in {"running", "grading"}
        assert (await caller.poll(first, "first")).json()["status"] == "grading"
        waiting = asyncio.create_task(caller.poll(first, "first"))
        await until(lambda: grading.inside == 2)
        grading.opened.set()
        assert (await waiting).json()["status"] == "success"


async def test_a_poll_without_a_change_returns_after_the_window() -> None:
    gate = Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate))
    app = create_rollout_server(
        backend=backend, result_wait_timeout_sec=0.3, polling_lease_timeout_sec=5
    )
    async with serve(app) as caller:
        token = await caller.admitted()
        assert (await caller.poll(token)).json()["status"] == "running"
        began = asyncio.get_running_loop().time()
        assert (await caller.poll(token)).json()["status"] == "running"
        assert 0.29 <= asyncio.get_running_loop().time() - began < 5
        gate.opened.set()


@pytest.mark.parametrize(
    ("grader", "status", "kept"),
    [
        (MultiplyGrader, "success", 1.0),
        (DroppingGrader, "success", None),
        (FailingGrader, "failure", None),
    ],
)
async def test_rewards_on_the_wire(
    grader: Any, status: str, kept: float | None, artifact_root: Path
) -> None:
    backend = LocalBackend(workflow=MultiplyWorkflow, grader=grader)
    async with serve(create_rollout_server(backend=backend)) as caller:
        result = await caller.result(await caller.admitted())
    assert result["status"] == status
    assert result["sample"]["reward"] == kept
    if status == "failure":
        assert result["err_message"] == "grader broke \ufffd"
        assert result["err_category"] == "agent_error"
    saved = json.loads((artifact_root / "r-1" / "trajectory.json").read_text())
    assert saved["extra"]["osmosis"]["reward"] == 1.0


async def test_bytes_in_messages(artifact_root: Path) -> None:
    backend = LocalBackend(workflow=BytesWorkflow, grader=DroppingGrader)
    async with serve(create_rollout_server(backend=backend)) as caller:
        result = await caller.result(await caller.admitted())
        ungraded = await caller.result(await caller.admitted("r-2", grade=False), "r-2")
    assert result["status"] == "success"
    assert result["sample"] == {
        "messages": [*PROMPT, {"role": "assistant", "content": "AP8="}],
        "label": "408",
        "reward": None,
        "remove_sample": True,
        "metrics": {},
        "extra_fields": {},
    }
    assert ungraded["sample"]["remove_sample"] is False
    for rollout_id, phase in (("r-1", "Grader"), ("r-2", "Workflow")):
        noted = json.loads((artifact_root / rollout_id / "diagnostics.json").read_text())
        assert noted["warnings"] == [
            f"{phase}: Sample messages hold what JSON cannot; it is text wherever they are "
            "written: bytes"
        ]
    assert (artifact_root / "r-1" / "trajectory.json").is_file()


async def test_telemetry_and_text_that_json_cannot_hold(artifact_root: Path) -> None:
    async with serve(create_rollout_server(backend=LocalBackend(workflow=OddWorkflow))) as caller:
        token = await caller.admitted(grade=False, label="l\ud800")
        sample = (await caller.result(token))["sample"]
    assert sample["messages"] == [{"role": "assistant", "content": "a\ufffdb"}]
    assert sample["metrics"] == {"steps": 2}
    assert sample["extra_fields"] == {"tuple": [1, 2]}
    assert sample["label"] == "l\ufffd"
    assert not (artifact_root / "r-1" / "trajectory.json").exists()


async def test_a_lifespan_surrounds_every_rollout() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, str]]:
        seen.append("entered")
        yield {"from": "lifespan"}
        seen.append(f"left with {backend.health()['concurrency']['running']} running")

    gate = Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate))
    app = create_rollout_server(backend=backend, lifespan=lifespan)
    async with serve(app) as caller:
        token = await caller.admitted()
        assert (await caller.poll(token)).json()["status"] == "running"
        gate.opened.set()
    assert seen == ["entered", "left with 0 running"]


@pytest.mark.parametrize(("handlers", "level"), [([], logging.INFO), ([logging.NullHandler()], 30)])
def test_logging_is_left_to_who_configured_it(
    handlers: list[logging.Handler], level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(handlers))
    monkeypatch.setattr(root, "level", logging.WARNING)
    for configure in (False, True):
        assert root.handlers == handlers
        create_rollout_server(
            backend=LocalBackend(workflow=MultiplyWorkflow), configure_logging=configure
        )
    assert len(root.handlers) == 1
    assert root.level == level
