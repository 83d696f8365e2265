"""One function decides where sandboxes live; a configuration can force it."""

from pathlib import Path

import pytest
from harbor.models.environment_type import EnvironmentType
from harbor.models.task.config import TaskConfig
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.places.choose import DOCKER, SKY_DOCKER, choose_place
from harbor_backend.places.place import TaskFiles
from tests.tasks.dataset import DATASET, NAMES

OURS, HARBOR = "osmosis-docker", "docker"

CASES = {
    "nothing special": ("", OURS),
    "no network": ("[environment]\nnetwork_mode = 'no-network'", OURS),
    "public": ("[environment]\nnetwork_mode = 'public'", OURS),
    "limits": ("[environment]\ncpus = 2\nmemory_mb = 100", OURS),
    "prebuilt image": ("[environment]\ndocker_image = 'x:1'", OURS),
    "separate verifier": ("[verifier]\nenvironment_mode = 'separate'", OURS),
    "allowlist": (
        "[environment]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['example.com']",
        HARBOR,
    ),
    "allowlist of the agent": (
        "[agent]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['example.com']",
        HARBOR,
    ),
    "allowlist of the verifier": (
        "[verifier]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['example.com']",
        HARBOR,
    ),
    "allowlist of a step": (
        "[[steps]]\nname = 'a'\n[steps.agent]\nnetwork_mode = 'allowlist'\n"
        "allowed_hosts = ['example.com']",
        HARBOR,
    ),
    "allowlist of a separate verifier": (
        "[verifier]\nenvironment_mode = 'separate'\n[verifier.environment]\n"
        "network_mode = 'allowlist'\nallowed_hosts = ['example.com']",
        HARBOR,
    ),
    "no network for the agent alone": ("[agent]\nnetwork_mode = 'no-network'", HARBOR),
    "no network for a step alone": (
        "[[steps]]\nname = 'a'\n[steps.agent]\nnetwork_mode = 'no-network'",
        HARBOR,
    ),
    "accelerator": ("[environment]\ngpus = 1", HARBOR),
    "windows": ("[environment]\nos = 'windows'", HARBOR),
}


def chosen(forced: EnvironmentConfig | None, task: TaskConfig, folder: Path) -> str:
    """The name of the place in which a task's sandboxes live."""
    return choose_place(forced).of(TaskFiles("task", task, folder)).name


@pytest.mark.parametrize("case", CASES)
def test_the_task_decides(case: str, tmp_path: Path) -> None:
    text, expected = CASES[case]
    task = TaskConfig.model_validate_toml(text)
    assert chosen(None, task, tmp_path) == expected


@pytest.mark.parametrize("name", ["docker-compose.yaml"])
def test_services_go_to_harbor(name: str, tmp_path: Path) -> None:
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment" / name).write_text("services: {main: {}}")
    assert chosen(None, TaskConfig(), tmp_path) == HARBOR


@pytest.mark.parametrize("name", NAMES)
def test_tasks_of_the_dataset(name: str) -> None:
    task = TaskConfig.model_validate_toml((DATASET / name / "task.toml").read_text())
    expected = HARBOR if name == "kv-migrate" else OURS
    assert chosen(None, task, DATASET / name) == expected


FORCED = {
    "harbor's": (EnvironmentConfig(type=EnvironmentType.DOCKER), HARBOR),
    "harbor's, by its class": (
        EnvironmentConfig(import_path="harbor.environments.docker.docker:DockerEnvironment"),
        HARBOR,
    ),
    "ours": (EnvironmentConfig(import_path=DOCKER), OURS),
    "ours, by its former name": (
        EnvironmentConfig(import_path="harbor_backend.environments.docker:DockerEnvironment"),
        OURS,
    ),
    "hosts": (EnvironmentConfig(import_path=SKY_DOCKER, kwargs={"hosts": ["a"]}), "sky-docker"),
    "hosts, by their former name": (
        EnvironmentConfig(
            import_path="harbor_backend.sky_docker.environment:SkyDockerEnvironment",
            kwargs={"hosts": ["a"], "supervise": False},
        ),
        "sky-docker",
    ),
    "another of harbor's": (EnvironmentConfig(type=EnvironmentType.DAYTONA), "daytona"),
    "a caller's own": (EnvironmentConfig(import_path="mine:Mine"), "mine:Mine"),
}


@pytest.mark.parametrize("services", [True, False])
@pytest.mark.parametrize("case", FORCED)
def test_a_configuration_forces_it(case: str, services: bool, tmp_path: Path) -> None:
    forced, expected = FORCED[case]
    given = forced.model_copy(deep=True)
    if services:
        (tmp_path / "environment").mkdir()
        (tmp_path / "environment" / "docker-compose.yaml").write_text("services: {main: {}}")
    assert chosen(forced, TaskConfig(), tmp_path) == expected
    assert forced == given


def test_an_address_for_remote_sandboxes_needs_remote_sandboxes() -> None:
    with pytest.raises(ValueError, match="agent_base_url="):
        choose_place(None, agent_base_url="https://engine.example")
