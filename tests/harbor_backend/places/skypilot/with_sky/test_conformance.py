"""The conformance suite in sandboxes of the double: the outcomes of every other backend."""

import pytest
from harbor.models.trial.config import EnvironmentConfig

from tests.conformance.sandboxed import Place, found, locally, runtime, test_case, test_life
from tests.harbor_backend.places.skypilot.with_sky.conftest import WHOSE

__all__ = ["found", "locally", "runtime", "test_case", "test_life"]

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]


@pytest.fixture(
    scope="module",
    params=[(whose, grading) for whose in WHOSE for grading in ("fresh", "shared")],
    ids="-".join,
)
def place(request: pytest.FixtureRequest, registry_host: str) -> Place:
    """Sandboxes of one environment, with one place to grade."""
    whose, grading = request.param
    environment = EnvironmentConfig(**WHOSE[whose], kwargs={"registry": registry_host})
    return Place(grading, environment)
