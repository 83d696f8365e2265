"""The conformance suite in sandboxes of the double: the outcomes of every other backend."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.runtime import Runtime
from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV
from tests.conformance.cases import CASES
from tests.conformance.compare import assert_outcome, comparable
from tests.conformance.conftest import PROJECT_DIR
from tests.conformance.harness import LocalHarness
from tests.conformance.model import Case
from tests.conformance.test_harbor import HarborHarness, Ran, run_all, runtime
from tests.harbor_backend.skypilot.with_sky.conftest import WHOSE

__all__ = ["runtime"]  # a fixture

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]


@pytest.fixture(
    scope="module",
    params=[(whose, placement) for whose in WHOSE for placement in ("fresh", "shared")],
    ids="-".join,
)
def ran(
    request: pytest.FixtureRequest,
    runtime: Runtime,
    registry_host: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Ran]:
    """Every case's outcome in one environment and with one place to grade."""
    whose, placement = request.param
    root = tmp_path_factory.mktemp(f"skypilot-{whose}-{placement}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ARTIFACT_ROOT_ENV, str(root))
        patch.syspath_prepend(str(PROJECT_DIR))
        environment = EnvironmentConfig(**WHOSE[whose], kwargs={"registry": registry_host})
        return asyncio.run(run_all(HarborHarness(root, placement, runtime, environment)))


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
