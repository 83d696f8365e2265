"""One function decides which environment runs a task; a configuration can force either."""

from pathlib import Path

import pytest
from harbor.models.environment_type import EnvironmentType
from harbor.models.task.config import TaskConfig
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.environments.choose import OURS, choose_environment, is_ours
from tests.tasks.dataset import DATASET, NAMES

HARBOR = "docker"

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


def chosen(config: EnvironmentConfig) -> str | None:
    return config.import_path or (None if config.type is None else config.type.value)


@pytest.mark.parametrize("case", CASES)
def test_the_task_decides(case: str, tmp_path: Path) -> None:
    text, expected = CASES[case]
    task = TaskConfig.model_validate_toml(text)
    assert chosen(choose_environment(None, task, tmp_path)) == expected


@pytest.mark.parametrize("name", ["docker-compose.yaml"])
def test_services_go_to_harbor(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("services: {main: {}}")
    assert chosen(choose_environment(None, TaskConfig(), tmp_path)) == HARBOR


@pytest.mark.parametrize("name", NAMES)
def test_tasks_of_the_dataset(name: str) -> None:
    task = TaskConfig.model_validate_toml((DATASET / name / "task.toml").read_text())
    expected = HARBOR if name == "kv-migrate" else OURS
    assert chosen(choose_environment(None, task, DATASET / name / "environment")) == expected


@pytest.mark.parametrize("services", [True, False])
@pytest.mark.parametrize(
    "forced",
    [EnvironmentConfig(type=EnvironmentType.DOCKER), EnvironmentConfig(import_path=OURS)],
    ids=["harbor", "ours"],
)
def test_a_configuration_forces_either(
    forced: EnvironmentConfig, services: bool, tmp_path: Path
) -> None:
    if services:
        (tmp_path / "docker-compose.yaml").write_text("services: {main: {}}")
    result = choose_environment(forced, TaskConfig(), tmp_path)
    assert result == forced
    assert is_ours(result) is (forced.import_path == OURS)
    result.kwargs["changed"] = True
    assert "changed" not in forced.kwargs
