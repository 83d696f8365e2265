"""Fixtures for the tests of the rollout core and its integrations."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.rollout.policy import Policy, serve_policy


@pytest.fixture
async def policy() -> AsyncIterator[Policy]:
    """A running policy server."""
    async with serve_policy() as running:
        yield running


@pytest.fixture
def artifact_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where rollouts write in this test, instead of the home directory."""
    root = tmp_path / "rollouts"
    monkeypatch.setenv("_OSMOSIS_ROLLOUT_ARTIFACT_ROOT", str(root))
    return root
