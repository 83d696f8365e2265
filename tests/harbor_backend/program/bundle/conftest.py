"""Projects to bundle, each test with a copy and a cache of its own."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

PROJECTS = Path(__file__).parents[3] / "projects"


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Path]:
    """Copies an example project by name and returns the copy."""

    def copy(name: str) -> Path:
        compiled = shutil.ignore_patterns("__pycache__")  # by another test that imported it
        return Path(shutil.copytree(PROJECTS / name, tmp_path / name, ignore=compiled))

    return copy


@pytest.fixture
def bundles_dir(tmp_path: Path) -> Path:
    return tmp_path / "bundles"
