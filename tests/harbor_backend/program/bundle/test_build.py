"""Bundles of every layout, and what is never in one."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from osmosis_ai.packaging import EntryPoints, build_bundle, inspect_bundle

FLAT = EntryPoints(
    agent="main:DoublingWorkflow",
    workflow_config="main:doubling_config",
    grader="main:DoublingGrader",
    grader_config="main:doubling_grader_config",
)
PACKAGED = EntryPoints(agent="echo_agent.workflow:EchoWorkflow")
SRC = EntryPoints(grader="adder.grading:Graders.Strict")

REPOSITORY = Path(__file__).parents[4]

type Copy = Callable[[str], Path]


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {n for n in archive.namelist() if ".dist-info/" not in n}


def install(wheel: Path, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)


def run(code: str, *path: Path) -> str:
    code = f"import sys; sys.path[:0] = {[str(p) for p in path]!r}\n{code}"
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout


def test_a_flat_project_keeps_its_modules_packages_and_data(
    project: Copy, bundles_dir: Path, tmp_path: Path
) -> None:
    root = project("flat")
    (root / "tests").mkdir()
    (root / "tests" / "test_main.py").write_text("")
    (root / ".env").write_text("KEY=secret")

    wheel = build_bundle(root, entry_points=FLAT, bundles_dir=bundles_dir)

    assert names(wheel) == {
        "helpers.py",
        "main.py",
        "osmosis_bundle_main.py",
        "prompts/system.txt",
        "shared/__init__.py",
        "shared/texts.py",
    }
    info = inspect_bundle(wheel)
    assert (info.name, info.version, info.requirements) == (
        "flat-rollout",
        "1.2.0",
        ("osmosis-ai",),
    )
    assert (info.agent, info.workflow_config) == (FLAT.agent, FLAT.workflow_config)
    assert (info.grader, info.grader_config) == (FLAT.grader, FLAT.grader_config)
    assert info.runner == "osmosis_bundle_main"
    install(wheel, tmp_path / "installed")
    shown = run(
        "import osmosis_bundle_main as b; a, c = b.load_agent(); g, d = b.load_grader()\n"
        "print(a.__name__, c.factor, g.__name__, d.name)",
        tmp_path / "installed",
        REPOSITORY,
    )
    assert shown.split() == ["DoublingWorkflow", "2", "DoublingGrader", "doubling-grader"]


def test_a_package_is_built_by_its_own_backend(project: Copy, bundles_dir: Path) -> None:
    wheel = build_bundle(project("packaged"), entry_points=PACKAGED, bundles_dir=bundles_dir)

    assert names(wheel) == {
        "echo_agent/__init__.py",
        "echo_agent/osmosis_bundle_main.py",
        "echo_agent/workflow.py",
    }
    info = inspect_bundle(wheel)
    assert info.runner == "echo_agent.osmosis_bundle_main"
    assert (info.agent, info.grader) == (PACKAGED.agent, None)
    assert info.requirements == ("idna>=3", "osmosis-ai[server]")


def test_a_src_layout_without_build_system_holds_a_grader_alone(
    project: Copy, bundles_dir: Path, tmp_path: Path
) -> None:
    wheel = build_bundle(project("src_layout"), entry_points=SRC, bundles_dir=bundles_dir)

    assert "adder/grading.py" in names(wheel)
    assert wheel.parents[1] == bundles_dir / "adder-rollout"
    assert (inspect_bundle(wheel).agent, inspect_bundle(wheel).grader) == (None, SRC.grader)
    install(wheel, tmp_path / "installed")
    shown = run(
        "from adder import osmosis_bundle_main as b; print(b.load_agent(), b.load_grader()[0])",
        tmp_path / "installed",
        REPOSITORY,
    )
    assert shown.strip() == "(None, None) <class 'adder.grading.Graders.Strict'>"


@pytest.mark.parametrize(
    "build",
    [
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n',
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[tool.hatch.build.targets.wheel]\nonly-include = ["main.py", "helpers.py", "shared", '
        '"prompts"]\n',
        '[build-system]\nrequires = ["setuptools>=77"]\nbuild-backend = "setuptools.build_meta"\n',
        '[build-system]\nrequires = ["setuptools>=77"]\nbuild-backend = "setuptools.build_meta"\n'
        '[tool.setuptools]\npy-modules = ["main", "helpers"]\npackages = ["shared"]\n',
    ],
    ids=["hatchling", "hatchling-list", "setuptools", "setuptools-list"],
)
def test_flat_modules_with_a_build_system_of_their_own(
    project: Copy, bundles_dir: Path, build: str
) -> None:
    root = project("flat")
    pyproject = root / "pyproject.toml"
    pyproject.write_text(pyproject.read_text() + build)
    wheel = build_bundle(root, entry_points=FLAT, bundles_dir=bundles_dir)
    assert names(wheel) >= {
        "main.py",
        "helpers.py",
        "shared/texts.py",
        "osmosis_bundle_main.py",
    }


def test_a_package_whose_name_is_not_the_projects_is_found(
    project: Copy, bundles_dir: Path
) -> None:
    root = project("packaged")
    pyproject = root / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace('"echo-agent"', '"something-else"'))
    wheel = build_bundle(root, entry_points=PACKAGED, bundles_dir=bundles_dir)
    assert "echo_agent/workflow.py" in names(wheel)
    assert inspect_bundle(wheel).name == "something-else"


def test_noise_and_harbor_tasks_are_left_out(project: Copy, bundles_dir: Path) -> None:
    root = project("flat")
    for noise in ("venv", ".venv", "node_modules", "__pycache__", "dist", "x.egg-info"):
        (root / noise).mkdir()
        (root / noise / "big.py").write_text("")
    (root / "venv" / "link").symlink_to("/usr")
    (root / "uv.lock").write_text("")
    (root / "tasks" / "one" / "solution").mkdir(parents=True)
    (root / "tasks" / "one" / "task.toml").write_text("")
    (root / "tasks" / "one" / "solution" / "solve.py").write_text("ANSWER = 42")
    with_noise = build_bundle(root, entry_points=FLAT, bundles_dir=bundles_dir)
    assert not any("big.py" in n or "solve" in n or n == "uv.lock" for n in names(with_noise))


def test_a_file_symlink_inside_the_project_is_followed(project: Copy, bundles_dir: Path) -> None:
    root = project("flat")
    (root / "alias.py").symlink_to("helpers.py")
    wheel = build_bundle(root, entry_points=FLAT, bundles_dir=bundles_dir)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("alias.py") == (root / "helpers.py").read_bytes()


def test_a_class_of_a_script_is_found_under_the_scripts_name(
    project: Copy, bundles_dir: Path
) -> None:
    root = project("flat")
    with (root / "main.py").open("a") as main:
        main.write(
            f"""
if __name__ == "__main__":
    from osmosis_ai.packaging import (
        EntryPoints, build_bundle, entry_point_for, inspect_bundle, project_dir_for
    )
    project = project_dir_for(DoublingWorkflow)
    entry_points = EntryPoints(
        agent=entry_point_for(DoublingWorkflow, project),
        workflow_config=entry_point_for(doubling_config, project),
    )
    wheel = build_bundle(
        DoublingWorkflow, entry_points=entry_points, bundles_dir=Path({str(bundles_dir)!r})
    )
    info = inspect_bundle(wheel)
    print(info.agent, info.workflow_config)
"""
        )
    shown = subprocess.run(
        [sys.executable, str(root / "main.py")],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert shown.split() == ["main:DoublingWorkflow", "main:doubling_config"]
