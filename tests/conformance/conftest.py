"""Fixtures of the conformance suite."""

from pathlib import Path

import pytest

from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV

PROJECT_DIR = Path(__file__).parents[1] / "projects" / "conformance"


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The rollout project of the suite, importable."""
    monkeypatch.syspath_prepend(str(PROJECT_DIR))
    return PROJECT_DIR


@pytest.fixture
def artifact_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh artifact root that backends made in the test take."""
    root = tmp_path / "rollouts"
    monkeypatch.setenv(ARTIFACT_ROOT_ENV, str(root))
    return root
