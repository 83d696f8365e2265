"""The suite on HarborBackend, wherever its sandboxes are.

A test module imports the tests and fixtures from here, and says in a fixture
``place``, of the module's scope, where its sandboxes are.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from harbor_backend.program.bundle import EntryPoints, build_bundle
from harbor_backend.program.runtime import Runtime, build_runtime
from osmosis_ai.rollout import ExecutionBackend
from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV
from tests.conformance.cases import CASES
from tests.conformance.compare import assert_outcome, comparable
from tests.conformance.conftest import PROJECT_DIR
from tests.conformance.harness import BackendHarness, LocalHarness, Ran, Wired
from tests.conformance.life import Life, Watched
from tests.conformance.listening import assert_told
from tests.conformance.model import Case, path
from tests.conformance.tables.lives import LIVES

__all__ = ["CONCURRENCY", "Place", "found", "locally", "runtime", "test_case", "test_life"]

TEMPLATE = Path(__file__).parents[2] / "tasks" / "multiply"
CONCURRENCY = 4


@dataclass(frozen=True)
class Place:
    """Where the sandboxes are, when it is not the local Docker, and which of them grades."""

    grading: Literal["fresh", "shared"] = "fresh"
    environment: EnvironmentConfig | None = None


class _Unclosed(Runtime):
    """A runtime that outlives the backends that share it."""

    def close(self) -> None:
        """The fixture closes the original."""


class HarborHarness(BackendHarness):
    """HarborBackend on one queue; all cases share one runtime, for they are of one project."""

    def __init__(self, artifact_root: Path, place: Place, runtime: Runtime) -> None:
        super().__init__(artifact_root)
        self.name = f"harbor-{place.grading}"
        self._place = place
        self._runtime = _Unclosed(runtime.path, runtime.key, runtime._entry)
        self._queue = TrialQueue(n_concurrent=CONCURRENCY)

    def backend(self, wired: Wired, slots: int | None = None) -> ExecutionBackend:
        backend = HarborBackend(
            orchestrator=self._queue if slots is None else TrialQueue(n_concurrent=slots),
            tasks_dir=TEMPLATE,
            agent=path(wired.workflow),
            workflow_config=path(wired.workflow_config),
            grader=path(wired.grader),
            grader_config=path(wired.grader_config),
            grader_sandbox=self._place.grading,
            environment_config=self._place.environment,
        )
        # A bundle names its entry points, so each case would build one of its own.
        backend._program._runtime = self._runtime
        return backend


@dataclass
class Found:
    """What came of everything, by id."""

    cases: dict[str, Ran] = field(default_factory=dict)
    lives: dict[str, Watched] = field(default_factory=dict)


async def run_all(harness: BackendHarness) -> Found:
    """Run everything, some at once: a container's start is mostly waiting."""
    found = Found()
    slots = asyncio.Semaphore(CONCURRENCY)

    async def run(case: Case) -> None:
        async with slots:
            found.cases[case.id] = await harness.run(case)

    async def live(life: Life) -> None:
        async with slots:
            found.lives[life.id] = await harness.live(life)

    async with asyncio.TaskGroup() as group:
        for case in CASES:
            group.create_task(run(case))
        for life in LIVES:
            group.create_task(live(life))
    return found


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """The runtime of the suite's project."""
    entry = EntryPoints(agent="conformance_rollout.returns:Output")
    with build_runtime(build_bundle(PROJECT_DIR, entry_points=entry)) as built:
        yield built


@pytest.fixture(scope="module")
def found(place: Place, runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What came of everything in the module's sandboxes."""
    root = tmp_path_factory.mktemp("sandboxed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ARTIFACT_ROOT_ENV, str(root))
        patch.syspath_prepend(str(PROJECT_DIR))
        return asyncio.run(run_all(HarborHarness(root, place, runtime)))


class Locally:
    """What LocalBackend makes of a case or a life, found once."""

    def __init__(self, artifact_root: Path) -> None:
        self._harness = LocalHarness(artifact_root)
        self._found = Found()

    async def run(self, case: Case) -> Ran:
        """Return a case's result."""
        if case.id not in self._found.cases:
            self._found.cases[case.id] = await self._harness.run(case)
        return self._found.cases[case.id]

    async def live(self, life: Life) -> Watched:
        """Return what was seen of a life."""
        if life.id not in self._found.lives:
            self._found.lives[life.id] = await self._harness.live(life)
        return self._found.lives[life.id]


@pytest.fixture(scope="module")
def locally(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locally]:
    """The same on LocalBackend."""
    root = tmp_path_factory.mktemp("local")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ARTIFACT_ROOT_ENV, str(root))
        patch.syspath_prepend(str(PROJECT_DIR))
        yield Locally(root)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_case(case: Case, found: Found, locally: Locally) -> None:
    """The outcome is what the case expects, and equal to LocalBackend's field by field."""
    ran, local = found.cases[case.id], await locally.run(case)
    assert_outcome(case, ran.outcome)
    assert_told(ran.calls, ran.outcome, ran.ended)
    assert ran.artifacts == case.artifacts
    assert comparable(ran.outcome) == comparable(local.outcome)
    assert ran.calls == local.calls


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.id)
async def test_life(life: Life, found: Found, locally: Locally) -> None:
    """It is as it is with LocalBackend, to the outcome's last field."""
    watched = found.lives[life.id]
    assert watched == life.expected
    assert watched.outcome == (await locally.live(life)).outcome
