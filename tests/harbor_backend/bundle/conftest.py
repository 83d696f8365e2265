"""Projects to bundle, each test with a copy and a cache of its own."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

PROJECTS = Path(__file__).parents[2] / "projects"


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Path]:
    """Copies an example project by name and returns the copy."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(PROJECTS / name, tmp_path / name))

    return copy


@pytest.fixture
def bundles_dir(tmp_path: Path) -> Path:
    return tmp_path / "bundles"
