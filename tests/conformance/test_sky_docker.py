"""The suite on HarborBackend with its sandboxes on a host over SSH, through a real sshd."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.environments.choose import SKY_DOCKER
from harbor_backend.runtime import Runtime
from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV
from tests.conformance.cases import CASES
from tests.conformance.compare import assert_outcome, comparable
from tests.conformance.conftest import PROJECT_DIR
from tests.conformance.harness import LocalHarness
from tests.conformance.model import Case
from tests.conformance.test_harbor import (
    CONCURRENCY,
    HarborHarness,
    Ran,
    run_all,
    runtime,
)
from tests.harbor_backend.sky_docker.sshd import Sshd

__all__ = ["runtime"]  # a fixture


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A host; yields the arguments of an environment on it."""
    folder = tmp_path_factory.mktemp("host")
    host = Sshd(folder, "node")
    host.start()
    config = folder / "ssh_config"
    config.write_text(host.client_config())
    yield {
        "hosts": [host.alias],
        "slots": CONCURRENCY,
        "ssh_config": str(config),
        "directory": str(folder / "remote"),
    }
    host.die()


@pytest.fixture(scope="module")
def ran(
    host: dict[str, Any], runtime: Runtime, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Ran]:
    """Every case's outcome."""
    root = tmp_path_factory.mktemp("sky-docker")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ARTIFACT_ROOT_ENV, str(root))
        patch.syspath_prepend(str(PROJECT_DIR))
        environment = EnvironmentConfig(import_path=SKY_DOCKER, kwargs=host)
        return asyncio.run(run_all(HarborHarness(root, "fresh", runtime, environment)))


@pytest.mark.docker
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_case(case: Case, ran: dict[str, Ran], artifact_root: Path) -> None:
    """The outcome is what the case expects, and equal to LocalBackend's field by field."""
    found = ran[case.id]
    assert_outcome(case, found.outcome)
    assert found.artifacts == case.artifacts
    local = await LocalHarness(artifact_root).execute(case)
    assert comparable(found.outcome) == comparable(local)
