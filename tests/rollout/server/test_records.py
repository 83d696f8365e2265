"""Status, lists, trajectories and artifacts: what can be read of rollouts beside their result."""

import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.rollout import LocalBackend
from osmosis_ai.rollout.server import create_rollout_server, upkeep
from osmosis_ai.rollout.types import RolloutStatusResponse
from tests.local_backend.gates import (
    Gate,
    GatedWorkflow,
    QuickGrader,
    QuickWorkflow,
    until,
    workflow_config,
)
from tests.rollout.server.serving import Caller, eventually, serve

pytestmark = pytest.mark.usefixtures("artifact_root")

STORE_KEY = "a store key"


def quick(store_url: str | None = None, **arguments: Any) -> Any:
    backend = LocalBackend(workflow=QuickWorkflow, grader=QuickGrader)
    return create_rollout_server(
        backend=backend, store_url=store_url, store_key=STORE_KEY, **arguments
    )


async def get(caller: Caller, path: str, **query: Any) -> Any:
    answer = await caller.http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_status_never_waits(store_url: str) -> None:
    gate = Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate))
    app = create_rollout_server(backend=backend, store_url=store_url, store_key=STORE_KEY)
    async with serve(app) as caller:
        token = await caller.admitted()
        while (status := await get(caller, "/rollout/r-1/status"))["status"] != "running":
            pass
        assert status["reward"] is None
        assert status["finished_at"] is None
        gate.opened.set()
        await caller.result(token)
        status = await get(caller, "/rollout/r-1/status")
        unknown = await caller.http.get("/rollout/r-2/status")
        nul = await caller.http.get("/rollout/a%00b/status")
    RolloutStatusResponse.model_validate(status)
    assert (status["status"], status["err_category"]) == ("failure", "validation_error")
    assert "no grader" in status["err_message"]
    assert status["attempts"] == 1
    assert status["served_until"] > status["finished_at"] >= status["admitted_at"]
    assert (unknown.status_code, nul.status_code) == (404, 404)


async def test_lists_filter_and_page(store_url: str) -> None:
    async with serve(quick(store_url)) as caller:
        before = datetime.now(UTC) - timedelta(seconds=1)
        names = [f"a-{n}" for n in range(5)] + ["A-x", "b%-1", "bé-2", "b_-3"]
        for name in names:
            await caller.result(await caller.admitted(name, grade=name != "A-x"), name)
        everything = (await get(caller, "/rollouts"))["rollouts"]
        assert [found["rollout_id"] for found in everything] == names[::-1]
        assert {found["reward"] for found in everything if found["rollout_id"] != "A-x"} == {1.0}

        async def ids(**query: Any) -> list[str]:
            found = await get(caller, "/rollouts", **query)
            return [one["rollout_id"] for one in found["rollouts"]]

        assert await ids(prefix="a-") == ["a-4", "a-3", "a-2", "a-1", "a-0"]
        assert await ids(prefix="b%") == ["b%-1"]
        assert await ids(prefix="b") == ["b_-3", "bé-2", "b%-1"]
        assert await ids(prefix="a\0") == []
        assert await ids(status=["success", "failure"], prefix="A") == ["A-x"]
        assert await ids(status="queued") == []
        assert len(await ids(since=before.isoformat())) == len(names)
        assert await ids(since="2999-01-01T00:00:00Z") == []

        paged: list[str] = []
        query: dict[str, Any] = {"limit": 4}
        while True:
            page = await get(caller, "/rollouts", **query)
            paged += [one["rollout_id"] for one in page["rollouts"]]
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
        assert paged == names[::-1]
        for wrong in (
            {"cursor": "before-0"},
            {"since": "yesterday"},
            {"since": "2026-01-31T12:00:00"},
            {"since": "1769860800"},
            {"limit": 0},
            {"status": "x"},
        ):
            assert (await caller.http.get("/rollouts", params=wrong)).status_code == 422


async def test_trajectory_and_artifacts(
    artifact_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(quick()) as caller:
        await caller.result(await caller.admitted())
        saved = await caller.http.get("/rollout/r-1/trajectory")
        assert saved.content == (artifact_root / "r-1" / "trajectory.json").read_bytes()
        assert saved.headers["content-type"] == "application/json"

        below = artifact_root / "r-1" / "artifacts"
        (below / "deep" / "er").mkdir(parents=True)
        (below / "deep" / "er" / "page.html").write_text("<script>alert(1)</script>")
        (below / "näme.txt").write_text("text")
        (artifact_root / "secret").write_text("secret")
        (below / "link").symlink_to(artifact_root / "secret")
        (below / "up").symlink_to(artifact_root)
        os.mkfifo(below / "pipe")
        listed = await get(caller, "/rollout/r-1/artifacts")
        assert [(f["path"], f["size"]) for f in listed["artifacts"]] == [
            ("deep/er/page.html", 25),
            ("näme.txt", 4),
        ]
        page = await caller.http.get("/rollout/r-1/artifacts/deep/er/page.html")
        assert page.text == "<script>alert(1)</script>"
        assert page.headers["content-type"] == "application/octet-stream"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["content-disposition"].startswith("attachment")
        text = await caller.http.get("/rollout/r-1/artifacts/näme.txt")
        assert text.headers["content-type"] == "text/plain; charset=utf-8"
        for path in (
            "link", "up/secret", "pipe", "deep", "deep/", "", "missing",
            "..%2Ftrajectory.json", "%2e%2e/trajectory.json", "deep//er/page.html", "a%00b",
            "..%2f..%2fsecret", "/etc/passwd",
        ):  # fmt: skip
            answer = await caller.http.get(f"/rollout/r-1/artifacts/{path}")
            assert answer.status_code in {404, 307}, path
            assert "secret" not in answer.text
        for path in ("/rollout/r-2/artifacts", "/rollout/r-2/trajectory", "/rollout/../trajectory"):
            assert (await caller.http.get(path)).status_code == 404


async def test_large_files_are_refused(
    artifact_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("osmosis_ai.rollout.server.app.MAX_FILE_BYTES", 1000)
    async with serve(quick()) as caller:
        await caller.result(await caller.admitted())
        (artifact_root / "r-1" / "artifacts" / "big.txt").write_bytes(b"x" * 1001)
        (artifact_root / "r-1" / "artifacts" / "fits.txt").write_bytes(b"x" * 1000)
        assert (await caller.http.get("/rollout/r-1/artifacts/big.txt")).status_code == 413
        assert (await caller.http.get("/rollout/r-1/artifacts/fits.txt")).text == "x" * 1000


async def test_records_outlive_results_and_are_pruned(
    store_url: str,
    artifact_root: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(upkeep, "PRUNE_SEC", 0.2)
    caplog.set_level(logging.INFO)
    app = quick(store_url, result_retention_sec=0.5, max_records=3, keep_files=False)
    async with serve(app) as caller:
        for number in range(6):
            name = f"r-{number}"
            await caller.result(await caller.admitted(name), name)

        async def three_are_left() -> bool:
            return len((await get(caller, "/rollouts"))["rollouts"]) <= 3

        await eventually(three_are_left)
        kept = (await get(caller, "/rollouts"))["rollouts"]
        assert [one["rollout_id"] for one in kept] == ["r-5", "r-4", "r-3"]

        async def its_id_is_free() -> bool:
            answer = await caller.start("r-5", label="again")
            assert answer.status_code in {202, 409}
            return answer.status_code == 202

        await eventually(its_id_is_free)
        await until(lambda: not (artifact_root / "r-0").exists())
    assert (artifact_root / "r-5" / "trajectory.json").exists()
    assert "record(s): r-0" in caplog.text


async def test_records_are_pruned_by_age(
    store_url: str, artifact_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "PRUNE_SEC", 0.1)
    app = quick(store_url, result_retention_sec=0.1, record_retention_sec=0.3)
    async with serve(app) as caller:
        await caller.result(await caller.admitted())

        async def none_is_left() -> bool:
            return not (await get(caller, "/rollouts"))["rollouts"]

        await eventually(none_is_left)
        assert (await caller.http.get("/rollout/r-1/status")).status_code == 404
        assert (await caller.http.get("/rollout/r-1/trajectory")).status_code == 200
