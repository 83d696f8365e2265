"""Which hosts an environment's arguments mean, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from harbor_backend.places.choose import SKY_DOCKER
from harbor_backend.places.ssh.settings import fleet_settings, split_arguments
from tests.harbor_backend.rollouts.conftest import TEMPLATE

GENERATED = """\
# Added by sky (use `sky stop/down trials` to remove)
Host trials
  HostName 203.0.113.7
  User ubuntu
  Port 22

Host trials-worker1
  HostName 203.0.113.8
  User ubuntu
  Port 22
"""


def test_hosts_and_slots() -> None:
    hosts = {"hosts": ["ubuntu@a", {"destination": "b", "slots": 9}], "slots": 2}
    about_hosts, own = split_arguments({**hosts, "supervise": False}, frozenset({"supervise"}))
    assert own == {"supervise": False}
    settings = fleet_settings(about_hosts)
    assert [(host.destination, host.slots) for host in settings.hosts] == [
        ("ubuntu@a", 2),
        ("b", 9),
    ]
    assert settings.slots == 11
    assert settings.directory == ".osmosis"


def test_the_nodes_of_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the file that SkyPilot writes, which ssh is then told to read."""
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / ".sky" / "generated" / "ssh" / "trials"
    path.parent.mkdir(parents=True)
    path.write_text(GENERATED)
    settings = fleet_settings({"cluster": "trials"})
    assert [host.destination for host in settings.hosts] == ["trials", "trials-worker1"]
    assert settings.ssh_config == str(path)


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({}, "either cluster=.*or hosts="),
        ({"cluster": "a", "hosts": ["b"]}, "either cluster=.*or hosts="),
        ({"cluster": "not-launched"}, "sky launch -c not-launched skypilot.hosts.yaml"),
        ({"cluster": "../etc"}, "no name of a SkyPilot cluster"),
        ({"hosts": "a"}, "must be a list"),
        ({"hosts": []}, "hosts: "),
        ({"hosts": ["-oProxyCommand=touch x"]}, "no ssh destination"),
        ({"hosts": ["a b"]}, "no ssh destination"),
        ({"hosts": ["a", "a"]}, "names a twice"),
        ({"hosts": ["a"], "slots": 0}, "hosts.0.slots: .*greater than or equal to 1"),
        ({"hosts": [{"destination": "a", "slot": 3}]}, "hosts.0.slot: "),
        ({"hosts": ["a"], "docker_sock": "/x"}, "docker_sock: "),
        ({"hosts": ["a"], "docker_socket": "x"}, "absolute path"),
    ],
)
def test_refusals(
    kwargs: dict[str, Any], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ValueError, match=text):
        fleet_settings(kwargs)


def test_a_backend_refuses_at_once() -> None:
    with pytest.raises(ValueError, match="hots: "):
        HarborBackend(
            orchestrator=TrialQueue(n_concurrent=1),
            tasks_dir=TEMPLATE,
            agent="oracle",
            environment_config=EnvironmentConfig(
                import_path=SKY_DOCKER, kwargs={"hosts": ["a"], "hots": 1}
            ),
        )
