"""What a grader's own sandbox may reach."""

import pytest
from harbor.models.task.config import NetworkMode, NetworkPolicy

from harbor_backend.trial.grader_verifier import grader_network


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (NetworkMode.PUBLIC, NetworkMode.PUBLIC),
        (NetworkMode.NO_NETWORK, NetworkMode.NO_NETWORK),
        (NetworkMode.ALLOWLIST, NetworkMode.NO_NETWORK),
    ],
)
def test_a_graders_network_is_never_wider_than_the_tasks(
    task: NetworkMode, expected: NetworkMode
) -> None:
    hosts = ["example.com"] if task is NetworkMode.ALLOWLIST else []
    policy = NetworkPolicy(network_mode=task, allowed_hosts=hosts)
    assert grader_network(policy).network_mode is expected
