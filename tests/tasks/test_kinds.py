"""The dataset shows each feature of Harbor's task format that the engine has to honour."""

from harbor.models.task.config import (
    MultiStepRewardStrategy,
    NetworkMode,
    TaskConfig,
    VerifierEnvironmentMode,
)
from harbor.models.task.task import Task
from harbor.models.task.verifier_mode import resolve_verifier_environment_definition

from .dataset import DATASET, NAMES


def config(name: str) -> TaskConfig:
    return Task(DATASET / name).config


def test_one_task_has_a_second_service() -> None:
    composed = [n for n in NAMES if (DATASET / n / "environment/docker-compose.yaml").exists()]
    assert composed == ["kv-migrate"]


def test_one_task_is_verified_in_a_container_of_its_own() -> None:
    separate = [
        name
        for name in NAMES
        if config(name).verifier.environment_mode is VerifierEnvironmentMode.SEPARATE
    ]
    assert separate == ["stack-machine"]
    task = Task(DATASET / "stack-machine")
    definition = resolve_verifier_environment_definition(task.config, task.paths)
    assert definition is not None
    assert definition.bundled_tests
    assert definition.directory == task.paths.tests_dir
    assert task.config.artifacts == ["/app/stackvm.py"]


def test_one_task_has_steps_and_the_second_waits_for_the_first() -> None:
    stepped = {name: steps for name in NAMES if (steps := config(name).steps)}
    assert list(stepped) == ["ledger"]
    first, second = stepped["ledger"]
    assert (first.name, second.name) == ("import", "correct")
    assert first.min_reward == 1.0
    assert config("ledger").multi_step_reward_strategy is MultiStepRewardStrategy.MEAN


def test_one_task_runs_its_agent_without_root_and_its_verifier_with_it() -> None:
    users = {name: user for name in NAMES if (user := config(name).agent.user) is not None}
    assert users == {"content-store": "worker"}
    assert config("content-store").verifier.user == "root"


def test_one_task_asks_for_no_network_and_the_others_for_nothing_special() -> None:
    modes = {name: config(name).environment.network_mode for name in NAMES}
    assert modes.pop("cron-next") is NetworkMode.NO_NETWORK
    assert set(modes.values()) == {NetworkMode.PUBLIC}
