"""Every shipped task is one that Harbor accepts, with a solution and nothing to download."""

import py_compile
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from harbor.models.task.task import Task

from .dataset import DATASET, NAMES, TASKS, TEMPLATE

BASE_IMAGE = "python:3.12-slim"
DOWNLOADS = re.compile(r"\b(pip|uv|apt|apt-get|curl|wget|git)\b|\bADD\s")


def solve_scripts(task: Task) -> list[Path | None]:
    target = task.config.environment.os
    if task.config.steps:
        return [
            task.paths.discovered_step_solve_path_for(step.name, target)
            for step in task.config.steps
        ]
    return [task.paths.discovered_solve_path_for(target)]


def verifier_scripts(task: Task) -> list[Path | None]:
    target = task.config.environment.os
    if task.config.steps:
        return [
            task.paths.discovered_step_test_path_for(step.name, target)
            for step in task.config.steps
        ]
    return [task.paths.discovered_test_path_for(target)]


def test_the_dataset_has_at_least_seven_tasks() -> None:
    assert len(NAMES) >= 7


@pytest.mark.parametrize("name", NAMES)
def test_harbor_accepts_the_task(name: str) -> None:
    assert Task.is_valid_dir(DATASET / name)
    task = Task(DATASET / name)
    assert task.name == f"osmosis/{name}"
    assert task.config.task is not None
    assert task.config.task.description
    if task.config.steps:
        assert all(task.step_instruction(step.name).strip() for step in task.config.steps)
    else:
        assert task.instruction.strip()


@pytest.mark.parametrize("name", NAMES)
def test_every_phase_has_a_time_limit(name: str) -> None:
    config = Task(DATASET / name).config
    assert config.agent.timeout_sec is not None
    assert 0 < config.agent.timeout_sec <= 900
    assert 0 < config.verifier.timeout_sec <= 180


@pytest.mark.parametrize("name", NAMES)
def test_every_phase_has_scripts_that_bash_can_read(name: str) -> None:
    task = Task(DATASET / name)
    for script in (*solve_scripts(task), *verifier_scripts(task)):
        assert script is not None
        assert script.read_text().startswith("#!/bin/bash\n")
        subprocess.run(["bash", "-n", script], check=True, timeout=10)


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=str(p.relative_to(TASKS))) for p in sorted(TASKS.rglob("*.py"))]
)
def test_python_files_compile(path: Path, tmp_path: Path) -> None:
    py_compile.compile(str(path), cfile=str(tmp_path / "compiled"), doraise=True)


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=str(p.relative_to(TASKS))) for p in sorted(TASKS.rglob("Dockerfile"))],
)
def test_images_build_from_the_base_image_alone(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert [line for line in lines if line.startswith("FROM ")] == [f"FROM {BASE_IMAGE}"]
    assert not [line for line in lines if DOWNLOADS.search(line)]


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.parts[-3]) for p in sorted(TASKS.rglob("docker-compose.yaml"))]
)
def test_compose_services_are_built_here(path: Path) -> None:
    services = yaml.safe_load(path.read_text())["services"]
    assert "main" in services
    assert len(services) > 1
    for name, service in services.items():
        assert "image" not in service
        if name != "main":
            assert (path.parent / service["build"]["context"] / "Dockerfile").is_file()


def test_the_template_has_an_image_and_an_instruction_and_leaves_the_rest_to_the_engine() -> None:
    task = Task(TEMPLATE, disable_verification=True)
    assert task.instruction.strip()
    assert "network_mode" not in task.config.environment.model_fields_set
    assert not task.paths.tests_dir.exists()
    assert not task.paths.solution_dir.exists()
    dockerfile = (task.paths.environment_dir / "Dockerfile").read_text()
    assert dockerfile == f"FROM {BASE_IMAGE}\nWORKDIR /app\n"


def test_the_readme_names_every_task() -> None:
    text = (TASKS / "README.md").read_text()
    assert [name for name in NAMES if f"`{name}`" not in text] == []
