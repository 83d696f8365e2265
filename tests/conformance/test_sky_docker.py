"""The suite on HarborBackend with its sandboxes on a host over SSH, through a real sshd."""

from collections.abc import Iterator
from typing import Any

import pytest
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend import SKY_DOCKER
from tests.conformance.sandboxed import (
    CONCURRENCY,
    Place,
    found,
    locally,
    runtime,
    test_case,
    test_life,
)
from tests.conformance.verified import test_verified, verified
from tests.harbor_backend.places.ssh.sshd import Sshd

__all__ = ["found", "locally", "runtime", "test_case", "test_life", "test_verified", "verified"]

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A host; yields the arguments of an environment on it."""
    folder = tmp_path_factory.mktemp("host")
    host = Sshd(folder, "node")
    host.start()
    config = folder / "ssh_config"
    config.write_text(host.client_config())
    yield {
        "hosts": [host.alias],
        "slots": CONCURRENCY,
        "ssh_config": str(config),
        "directory": str(folder / "remote"),
    }
    host.die()


@pytest.fixture(scope="module")
def place(host: dict[str, Any]) -> Place:
    """The host."""
    return Place(environment=EnvironmentConfig(import_path=SKY_DOCKER, kwargs=host))
