"""The outcomes of tasks with tests of their own, wherever the sandboxes are.

LocalBackend has no tasks; these cases say themselves what every place must make of them.
"""

import asyncio
import shutil
from pathlib import Path

import pytest

from harbor_backend import HarborBackend
from harbor_backend.program.runtime import Runtime
from osmosis_ai.rollout import ExecutionBackend
from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV
from tests.conformance.compare import assert_outcome
from tests.conformance.conftest import PROJECT_DIR
from tests.conformance.harness import Ran, Wired
from tests.conformance.listening import assert_told
from tests.conformance.model import path
from tests.conformance.sandboxed import CONCURRENCY, TEMPLATE, HarborHarness, Place
from tests.conformance.tables.verified import VERIFIED, Verified

__all__ = ["test_verified", "verified"]


class VerifiedHarness(HarborHarness):
    """HarborBackend on one task with tests."""

    def __init__(self, root: Path, place: Place, runtime: Runtime, folder: Path) -> None:
        super().__init__(root, place, runtime)
        self._folder = folder

    async def verify(self, verified: Verified) -> Ran:
        """Run a case on a task of its own."""
        task = self._folder / verified.id
        shutil.copytree(TEMPLATE, task)
        with (task / "task.toml").open("a") as toml:  # Harbor's own Docker cannot have none
            toml.write('\n[environment]\nnetwork_mode = "public"\n')
        (task / "tests").mkdir()
        (task / "tests" / "test.sh").write_text(f"#!/bin/sh\n{verified.script}\n")
        one = VerifiedHarness(self.artifact_root, self._place, self._runtime, task)
        one._queue = self._queue
        return await one.run(verified.case)

    def backend(self, wired: Wired, slots: int | None = None) -> ExecutionBackend:
        """Return a new backend on the task."""
        backend = HarborBackend(
            orchestrator=self._queue,
            tasks_dir=self._folder,
            agent=path(wired.workflow),
            environment_config=self._place.environment,
        )
        backend._program._runtime = self._runtime
        return backend


async def verify_all(harness: VerifiedHarness) -> dict[str, Ran]:
    """Run everything, some at once; returns what came of it, by id."""
    ran: dict[str, Ran] = {}
    slots = asyncio.Semaphore(CONCURRENCY)

    async def verify(verified: Verified) -> None:
        async with slots:
            ran[verified.id] = await harness.verify(verified)

    async with asyncio.TaskGroup() as group:
        for each in VERIFIED:
            group.create_task(verify(each))
    return ran


@pytest.fixture(scope="module")
def verified(
    place: Place, runtime: Runtime, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Ran]:
    """What came of every case in the module's sandboxes."""
    root, tasks = tmp_path_factory.mktemp("verified"), tmp_path_factory.mktemp("tasks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ARTIFACT_ROOT_ENV, str(root))
        patch.syspath_prepend(str(PROJECT_DIR))
        return asyncio.run(verify_all(VerifiedHarness(root, place, runtime, tasks)))


@pytest.mark.parametrize("case", VERIFIED, ids=lambda case: case.id)
def test_verified(case: Verified, verified: dict[str, Ran]) -> None:
    """The outcome is what the case expects, and it was told so."""
    ran = verified[case.id]
    assert_outcome(case.case, ran.outcome)
    assert_told(ran.calls, ran.outcome, ran.ended)
