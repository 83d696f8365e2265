"""The conformance suite in sandboxes of the double: the outcomes of every other backend."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from harbor_backend.bundle import EntryPoints, build_bundle
from harbor_backend.runtime import Runtime, build_runtime
from osmosis_ai.rollout import ExecutionBackend
from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV
from tests.conformance.cases import CASES
from tests.conformance.compare import assert_outcome, comparable
from tests.conformance.conftest import PROJECT_DIR
from tests.conformance.harness import BackendHarness, LocalHarness
from tests.conformance.model import Case, path
from tests.conformance.test_harbor import CONCURRENCY, TEMPLATE, Placement, Ran, _run_all
from tests.harbor_backend.skypilot.with_sky.conftest import Unclosed

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]


class SkypilotHarness(BackendHarness):
    """HarborBackend on SkyPilot; all cases share one runtime, baked into one image."""

    def __init__(
        self, artifact_root: Path, placement: Placement, runtime: Runtime, registry: str
    ) -> None:
        super().__init__(artifact_root)
        self.name = f"skypilot-{placement}"
        self._placement: Placement = placement
        self._runtime = runtime
        self._environment = EnvironmentConfig(type="skypilot", kwargs={"registry": registry})
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


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """The runtime of the suite's project."""
    entry = EntryPoints(agent="conformance_rollout.returns:Output")
    with build_runtime(build_bundle(PROJECT_DIR, entry_points=entry)) as built:
        yield Unclosed(built.path, built.key, built._entry)


@pytest.fixture(scope="module", params=["fresh", "shared"])
def ran(
    request: pytest.FixtureRequest,
    runtime: Runtime,
    registry_host: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Ran]:
    """Every case's outcome with one place to grade."""
    placement = cast("Placement", request.param)
    root = tmp_path_factory.mktemp(f"skypilot-{placement}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ARTIFACT_ROOT_ENV, str(root))
        patch.syspath_prepend(str(PROJECT_DIR))
        return asyncio.run(_run_all(SkypilotHarness(root, placement, runtime, registry_host)))


@pytest.fixture(scope="module")
def local_outcomes() -> dict[str, Any]:
    """What LocalBackend makes of a case, by id, filled as tests ask."""
    return {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_case(
    case: Case,
    ran: dict[str, Ran],
    local_outcomes: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The outcome is what the case expects, and equal to LocalBackend's field by field."""
    monkeypatch.setenv(ARTIFACT_ROOT_ENV, str(tmp_path / "rollouts"))
    monkeypatch.syspath_prepend(str(PROJECT_DIR))
    found = ran[case.id]
    assert_outcome(case, found.outcome)
    assert found.artifacts == case.artifacts
    if case.id not in local_outcomes:
        local = await LocalHarness(tmp_path / "rollouts").execute(case)
        local_outcomes[case.id] = comparable(local)
    assert comparable(found.outcome) == local_outcomes[case.id]
