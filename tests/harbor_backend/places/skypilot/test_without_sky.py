"""What those see who ask for SkyPilot where it is not installed."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from harbor_backend.places.skypilot import SkypilotUnavailableError
from harbor_backend.places.skypilot.sdk import load_sdk
from osmosis_ai.cli.doctor.findings import Level
from osmosis_ai.cli.doctor.skypilot import skypilot

TEMPLATE = Path(__file__).parents[4] / "tasks" / "multiply"


@pytest.fixture(autouse=True)
def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the default install, also where these tests find SkyPilot."""

    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("harbor_backend.places.skypilot.sdk.version", version)
    load_sdk.cache_clear()


def test_a_backend_says_what_to_install() -> None:
    with pytest.raises(SkypilotUnavailableError, match=r"osmosis-ai\[harbor,skypilot\]"):
        HarborBackend(
            orchestrator=TrialQueue(n_concurrent=1),
            tasks_dir=TEMPLATE,
            agent="oracle",
            environment_config=EnvironmentConfig(type="skypilot", kwargs={"pool": "warm"}),
        )


def test_a_backend_on_docker_takes_no_remote_arguments() -> None:
    with pytest.raises(ValueError, match="belong to remote sandboxes"):
        HarborBackend(
            orchestrator=TrialQueue(n_concurrent=1),
            tasks_dir=TEMPLATE,
            agent="oracle",
            agent_base_url="https://example.com",
        )


def test_the_doctor_does_not_mind() -> None:
    (finding,) = skypilot()
    assert finding.level is Level.OK
    assert "not installed" in finding.detail
