"""Fixtures of the LocalBackend tests."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def artifact_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where rollouts write in this test, instead of the home directory."""
    root = tmp_path / "rollouts"
    monkeypatch.setenv("_OSMOSIS_ROLLOUT_ARTIFACT_ROOT", str(root))
    return root
