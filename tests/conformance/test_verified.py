"""The outcomes of tasks with tests, in our containers and in Harbor's own environment."""

import pytest
from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig

from tests.conformance.sandboxed import Place, runtime
from tests.conformance.verified import test_verified, verified

__all__ = ["runtime", "test_verified", "verified"]

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]

PLACES = {"ours": None, "harbors": EnvironmentConfig(type=EnvironmentType.DOCKER)}


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    """This machine's Docker, twice."""
    return Place(environment=PLACES[request.param])
