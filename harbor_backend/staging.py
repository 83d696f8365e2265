"""The private copy of a task that one trial runs."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import tomlkit
from harbor.models.task.config import TaskConfig
from harbor.models.task.task import Task

from harbor_backend.tasks import TaskError, TaskMode
from osmosis_ai.rollout.types.messages import Messages

_PLACEHOLDER = """#!/bin/sh
# Harbor expects a test script in every task. This rollout is graded by an SDK grader instead.
exit 1
"""


@dataclass(frozen=True)
class StagedTask:
    """A staged copy, its configuration, and whether the task brings tests of its own."""

    path: Path
    config: TaskConfig
    has_tests: bool


def stage_task(source: Path, target: Path, mode: TaskMode, prompt: Messages) -> StagedTask:
    """Copy a checked task to ``target`` and fit the copy to the rollout.

    Template mode writes the prompt as the instruction, and denies network
    access unless the task says what it wants.

    Raises:
        TaskError: Harbor does not accept the task.
    """
    shutil.copytree(source, target, symlinks=True)
    if mode is TaskMode.TEMPLATE:
        (target / "instruction.md").write_text(json.dumps(prompt, indent=2, ensure_ascii=True))
        _deny_network_by_default(target / "task.toml")
    try:
        has_tests = _has_tests(target)
        if not has_tests:
            tests = target / "tests"
            tests.mkdir(exist_ok=True)
            script = tests / "test.sh"
            script.write_text(_PLACEHOLDER)
            script.chmod(0o755)
        return StagedTask(target, Task(target, disable_verification=True).config, has_tests)
    except (OSError, ValueError) as exc:
        raise TaskError(f"Harbor does not accept the task {source}: {exc}") from exc


def set_image(task: Path, reference: str) -> None:
    """Let a staged task run this image, which was built of its Dockerfile."""
    config_path = task / "task.toml"
    document = tomlkit.parse(config_path.read_text())
    document.setdefault("environment", tomlkit.table())["docker_image"] = reference
    config_path.write_text(tomlkit.dumps(document))


def _has_tests(path: Path) -> bool:
    """Whether the task has a reward source of its own, by Harbor's own rules."""
    try:
        Task(path)
    except FileNotFoundError:
        return False
    return True


def _deny_network_by_default(config_path: Path) -> None:
    document = tomlkit.parse(config_path.read_text())
    environment = document.setdefault("environment", tomlkit.table())
    if "network_mode" in environment or "allow_internet" in environment:
        return
    environment["network_mode"] = "no-network"
    config_path.write_text(tomlkit.dumps(document))
