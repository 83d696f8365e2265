"""The suite on HarborBackend: template mode in Docker, with both places to grade."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from harbor_backend.bundle import EntryPoints, build_bundle
from harbor_backend.runtime import Runtime, build_runtime
from osmosis_ai.rollout import ExecutionBackend, ExecutionOutcome
from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV
from tests.conformance.cases import CASES
from tests.conformance.compare import assert_outcome, comparable
from tests.conformance.conftest import PROJECT_DIR
from tests.conformance.harness import BackendHarness, LocalHarness
from tests.conformance.model import Case, path

TEMPLATE = Path(__file__).parents[2] / "tasks" / "multiply"
CONCURRENCY = 4

type Placement = Literal["fresh", "shared"]


class _Unclosed(Runtime):
    """A runtime that outlives the backends that share it."""

    def close(self) -> None:
        """The fixture closes the original."""


class HarborHarness(BackendHarness):
    """HarborBackend on one queue; all cases share one runtime, for they are of one project.

    ``environment`` is where the sandboxes are, when it is not the local Docker.
    """

    def __init__(
        self,
        artifact_root: Path,
        placement: Placement,
        runtime: Runtime,
        environment: EnvironmentConfig | None = None,
    ) -> None:
        super().__init__(artifact_root)
        self.name = f"harbor-{placement}"
        self._placement: Placement = placement
        self._environment = environment
        self._runtime = _Unclosed(runtime.path, runtime.key, runtime._entry)
        self._queue = TrialQueue(n_concurrent=CONCURRENCY)

    def backend(self, case: Case) -> ExecutionBackend:
        backend = HarborBackend(
            orchestrator=self._queue,
            tasks_dir=TEMPLATE,
            agent=path(case.workflow),
            workflow_config=path(case.workflow_config),
            grader=path(case.grader),
            grader_config=path(case.grader_config),
            grader_sandbox=self._placement,
            environment_config=self._environment,
        )
        # A bundle names its entry points, so each case would build one of its own.
        backend._program._runtime = self._runtime
        return backend


@dataclass(frozen=True)
class Ran:
    """What a case did on one backend."""

    outcome: ExecutionOutcome
    artifacts: dict[str, bytes] | None


async def run_all(harness: BackendHarness) -> dict[str, Ran]:
    """Run every case, some at once: a container's start is mostly waiting."""
    ran: dict[str, Ran] = {}
    slots = asyncio.Semaphore(CONCURRENCY)

    async def run(case: Case) -> None:
        async with slots:
            outcome = await harness.execute(case)
        artifacts = None if case.artifacts is None else harness.artifacts(case)
        ran[case.id] = Ran(outcome, artifacts)

    async with asyncio.TaskGroup() as group:
        for case in CASES:
            group.create_task(run(case))
    return ran


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """The runtime of the suite's project."""
    entry = EntryPoints(agent="conformance_rollout.returns:Output")
    with build_runtime(build_bundle(PROJECT_DIR, entry_points=entry)) as built:
        yield built


@pytest.fixture(scope="module", params=["fresh", "shared"])
def ran(
    request: pytest.FixtureRequest, runtime: Runtime, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Ran]:
    """Every case's outcome with one place to grade."""
    placement = cast("Placement", request.param)
    root = tmp_path_factory.mktemp(f"harbor-{placement}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ARTIFACT_ROOT_ENV, str(root))
        patch.syspath_prepend(str(PROJECT_DIR))
        return asyncio.run(run_all(HarborHarness(root, placement, runtime)))


@pytest.fixture(scope="module")
def local_outcomes() -> dict[str, Any]:
    """What LocalBackend makes of a case, by id, filled as tests ask."""
    return {}


@pytest.mark.docker
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_case(
    case: Case, ran: dict[str, Ran], local_outcomes: dict[str, Any], artifact_root: Path
) -> None:
    """The outcome is what the case expects, and equal to LocalBackend's field by field."""
    found = ran[case.id]
    assert_outcome(case, found.outcome)
    assert found.artifacts == case.artifacts
    if case.id not in local_outcomes:
        local = await LocalHarness(artifact_root).execute(case)
        local_outcomes[case.id] = comparable(local)
    assert comparable(found.outcome) == local_outcomes[case.id]
