"""The suite on HarborBackend: template mode in Docker, with both places to grade."""

import pytest

from tests.conformance.sandboxed import Place, found, locally, runtime, test_case, test_life

__all__ = ["found", "locally", "runtime", "test_case", "test_life"]

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=["fresh", "shared"])
def place(request: pytest.FixtureRequest) -> Place:
    """This machine's Docker."""
    return Place(grading=request.param)
