"""The suite on LocalBackend."""

from pathlib import Path

import pytest

from tests.conformance.cases import CASES
from tests.conformance.compare import assert_outcome
from tests.conformance.harness import LocalHarness
from tests.conformance.life import Life
from tests.conformance.listening import assert_told
from tests.conformance.model import Case
from tests.conformance.tables.lives import LIVES


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_case(case: Case, artifact_root: Path) -> None:
    """The outcome, what is heard of it and the files on the host are what the case expects."""
    ran = await LocalHarness(artifact_root).run(case)

    assert_outcome(case, ran.outcome)
    assert_told(ran.calls, ran.outcome, ran.ended)
    assert ran.artifacts == case.artifacts


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.id)
async def test_life(life: Life, artifact_root: Path) -> None:
    """A rollout's callbacks, its status and its cancellation are as they are everywhere."""
    assert await LocalHarness(artifact_root).live(life) == life.expected


def test_ids_are_unique() -> None:
    ids = [case.id for case in CASES] + [life.id for life in LIVES]
    assert len(set(ids)) == len(ids)
