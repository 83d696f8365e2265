"""Fixtures for what runs inside a sandbox."""

from pathlib import Path

import pytest

from tests.rollout.container.sandbox_process import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """An empty project, and the runner on it."""
    return Sandbox(tmp_path)
