"""``osmosis trials run`` where the sandboxes are elsewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.harbor_backend.places.ssh.sshd import Sshd

from .conftest import DATASET, ROOT, Osmosis
from .test_refusals import refused


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Sshd]:
    """A host of its own, over SSH."""
    host = Sshd(tmp_path, "node")
    host.start()
    yield host
    host.die()


@pytest.mark.docker
def test_trials_on_a_host_over_ssh(osmosis: Osmosis, host: Sshd, tmp_path: Path) -> None:
    """The engine that ``DOCKER_HOST`` names is not asked: there is none."""
    config = tmp_path / "ssh_config"
    config.write_text(host.client_config())
    done = osmosis(
        "trials", "run", DATASET, "--agent", "oracle", "--threshold", "1.0", "--json",
        "--task", "free-slots", "--environment", "sky-docker", "-o", "hosts=node",
        "-o", f"ssh_config={config}", "-o", f"directory={tmp_path / 'remote'}", "-o", "slots=1",
        env={"DOCKER_HOST": "tcp://127.0.0.1:9"},
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["environment"] == "sky-docker"
    trial = done.json["tasks"][0]["trials"][0]
    assert (trial["reward"], trial["environment"]) == (1.0, "sky-docker")


@pytest.mark.docker
def test_a_host_that_is_not_there(osmosis: Osmosis, host: Sshd, tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text(host.client_config())
    host.die()
    done = osmosis(
        "trials", "run", DATASET, "--agent", "nop", "--task", "ledger",
        "--environment", "sky-docker", "-o", "hosts=node", "-o", f"ssh_config={config}",
    )  # fmt: skip
    assert done.code == 1
    assert "osmosis: No host can run a trial now (node: ssh does not connect" in done.err
    assert "Connection refused" in done.err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--environment", "sky-docker"], "either cluster=, the name of a cluster"),
        (["--environment", "sky-docker", "-o", "hosts=a", "-o", "slotz=3"], "slotz: "),
        (["--environment", "sky-docker", "-o", "hosts"], "--option hosts must read NAME=VALUE"),
        (["--environment", "sky-docker", "-o", "cluster=none-such"], "sky launch -c none-such"),
        (["--environment", "sky-docker", "-o", "hosts=a", "--keep", "all"], "--keep all is for"),
        (["-o", "hosts=a"], "--option is for skypilot and sky-docker; docker takes none"),
        (["--agent-base-url", "http://x"], "--agent-base-url is for --environment skypilot"),
        (
            ["--environment", "sky-docker", "-o", "hosts=a", "--task", "kv-migrate"],
            "kv-migrate cannot run in sky-docker",
        ),
    ],
)
def test_refusals(osmosis: Osmosis, arguments: list[str], text: str) -> None:
    refused(osmosis("trials", "run", DATASET, "--agent", "nop", *arguments), text)


def test_skypilot_that_cannot_be_used(osmosis: Osmosis, tmp_path: Path) -> None:
    """Without the package, or without a login: an error of one line, before any trial."""
    done = osmosis(
        "trials", "run", DATASET, "--agent", "oracle", "--task", "ledger",
        "--environment", "skypilot", "-o", "registry=registry.invalid/team",
        env={"HOME": str(tmp_path), "SKYPILOT_API_SERVER_ENDPOINT": ""},
    )  # fmt: skip
    refused(done, "SkyPilot", code=1)


def test_the_documented_workflows(osmosis: Osmosis) -> None:
    """They are YAML, and give the command options that it has."""
    text = (ROOT / "docs" / "skypilot-ci.md").read_text()
    workflows = [
        yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    ]
    assert len(workflows) == 2
    known = set(re.findall(r"--[a-z-]+|(?<=\s)-o\b", osmosis("trials", "run", "--help").out))
    for workflow in workflows:
        steps = workflow["jobs"]["trials"]["steps"]
        (script,) = [step["run"] for step in steps if step.get("name") == "Trials"]
        command = re.sub(r"\$\{\{.*?\}\}", "x", script)
        used = set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", command))
        assert {"--threshold", "--environment", "-o"} <= used <= known
