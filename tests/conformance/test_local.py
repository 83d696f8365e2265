"""The suite on LocalBackend."""

from pathlib import Path

import pytest

from tests.conformance.cases import CASES
from tests.conformance.compare import assert_outcome
from tests.conformance.harness import LocalHarness
from tests.conformance.model import Case


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_case(case: Case, artifact_root: Path) -> None:
    """The outcome and the files on the host are what the case expects."""
    harness = LocalHarness(artifact_root)

    outcome = await harness.execute(case)

    assert_outcome(case, outcome)
    if case.artifacts is not None:
        assert harness.artifacts(case) == case.artifacts


def test_ids_are_unique() -> None:
    ids = [case.id for case in CASES]
    assert len(set(ids)) == len(ids)
