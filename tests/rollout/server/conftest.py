"""Stores for the server's tests: every test of them runs on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import Cluster, running_cluster


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[Cluster]:
    """One PostgreSQL server for all tests that need one."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty PostgreSQL database."""
    cluster: Cluster = request.getfixturevalue("postgres_cluster")
    with cluster.database() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store/rollouts.db"
    return str(request.getfixturevalue("postgres_url"))
