"""The private copy of a task that a trial runs."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import NetworkMode

from harbor_backend.trial.staging import stage_task
from harbor_backend.trial.tasks import TaskError, TaskMode
from tests.tasks.dataset import DATASET, NAMES

TEMPLATE, DATA = TaskMode.TEMPLATE, TaskMode.DATASET
PROMPT = [{"role": "user", "content": "How many? — Ünïcödé"}]
WRITTEN = json.dumps(PROMPT, indent=2)
INSTRUCTION = "Count them."
TEST = "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n"
STEPS = "[[steps]]\nname = 'one'\n[[steps]]\nname = 'two'\n"
DENIED = NetworkMode.NO_NETWORK


def steps(**files: str) -> dict[str, str]:
    """The files of both steps; ``one_tests`` and the like are the texts of their tests."""
    made = {f"steps/{name}/instruction.md": INSTRUCTION for name in ("one", "two")}
    return made | {f"steps/{name.replace('_', '/')}/test.sh": text for name, text in files.items()}


@dataclass
class Case:
    """A task's files beside its Dockerfile, and what its copy has of its own."""

    toml: str = ""
    files: dict[str, str] = field(default_factory=dict)
    mode: TaskMode = TEMPLATE
    instruction: str | None = WRITTEN
    has_tests: bool = False
    network: NetworkMode = DENIED


CASES = {
    "a template's instruction is the prompt": Case(),
    "whatever it brought itself": Case(files={"instruction.md": INSTRUCTION}),
    "a dataset's is its own": Case(
        mode=DATA,
        files={"instruction.md": INSTRUCTION},
        instruction=INSTRUCTION,
        network=NetworkMode.PUBLIC,
    ),
    "a template keeps the network that it asks for": Case(
        toml="[environment]\nnetwork_mode = 'public'\n", network=NetworkMode.PUBLIC
    ),
    "also by the former name": Case(
        toml="[environment]\nallow_internet = true\n", network=NetworkMode.PUBLIC
    ),
    "a dataset's network is what it says": Case(
        mode=DATA,
        toml="[environment]\nnetwork_mode = 'no-network'\n",
        files={"instruction.md": INSTRUCTION},
        instruction=INSTRUCTION,
    ),
    "a template with tests": Case(files={"tests/test.sh": TEST}, has_tests=True),
    "a dataset's task with tests": Case(
        mode=DATA,
        files={"instruction.md": INSTRUCTION, "tests/test.sh": TEST},
        instruction=INSTRUCTION,
        has_tests=True,
        network=NetworkMode.PUBLIC,
    ),
    "files beside no test script are no tests": Case(files={"tests/data.txt": "x"}),
    "a script for another system is no test": Case(files={"tests/test.bat": "rem"}),
    "a separate verifier with an image of its own brings its tests": Case(
        toml="[verifier]\nenvironment_mode = 'separate'\n[verifier.environment]\n"
        "docker_image = 'x:1'\n",
        has_tests=True,
    ),
    "a separate verifier in the task's image does not": Case(
        toml="[verifier]\nenvironment_mode = 'separate'\n"
    ),
    "steps with a test each": Case(
        mode=DATA,
        toml=STEPS,
        files=steps(one_tests=TEST, two_tests=TEST),
        instruction=None,
        has_tests=True,
        network=NetworkMode.PUBLIC,
    ),
    "steps that share one": Case(
        mode=DATA,
        toml=STEPS,
        files={**steps(), "tests/test.sh": TEST},
        instruction=None,
        has_tests=True,
        network=NetworkMode.PUBLIC,
    ),
    "one step of two without": Case(
        mode=DATA,
        toml=STEPS,
        files=steps(one_tests=TEST),
        instruction=None,
        network=NetworkMode.PUBLIC,
    ),
    "steps in a template keep their instructions": Case(
        toml=STEPS, files=steps(one_tests=TEST, two_tests=TEST), has_tests=True
    ),
}


def made_task(folder: Path, toml: str, files: dict[str, str]) -> Path:
    source = folder / "counting"
    for name, text in {
        "task.toml": toml,
        "environment/Dockerfile": "FROM scratch\n",
        **files,
    }.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return source


def tree(folder: Path) -> dict[str, str]:
    """Every file of a folder and its text."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.filterwarnings("ignore:The 'allow_internet' field is deprecated")
@pytest.mark.parametrize("name", CASES)
def test_the_copy_is_fit_to_the_rollout(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    source = made_task(tmp_path, case.toml, case.files)
    before = tree(source)
    target = tmp_path / "work" / "counting"
    staged = stage_task(source, target, case.mode, PROMPT)
    assert (staged.path, staged.name, staged.origin) == (target, "counting", source)
    assert staged.environment_dir == target / "environment"
    assert staged.has_tests is case.has_tests
    assert staged.config.environment.resolve_baseline().network_mode is case.network
    expected: dict[str, Any] = dict(before)
    if case.instruction is not None:
        expected["instruction.md"] = case.instruction
    after = tree(target)
    if not case.has_tests:
        placeholder = after.pop("tests/test.sh")
        assert placeholder.startswith("#!/bin/sh\n")
        assert placeholder.endswith("exit 1\n")
        assert (target / "tests" / "test.sh").stat().st_mode & 0o777 == 0o755
    after.pop("task.toml")
    expected.pop("task.toml")
    assert after == expected
    assert tree(source) == before


REFUSED: dict[str, tuple[str, dict[str, str], str]] = {
    # task.toml, files, what is said
    "an instruction is missing": ("", {}, "instruction.md"),
    "its tests are a file": ("", {"instruction.md": INSTRUCTION, "tests": "x"}, "tests"),
    "its test is left out of it": (
        "",
        {"instruction.md": INSTRUCTION, "tests/test.sh": TEST, "tests/.harborignore": "*.sh\n"},
        "test.sh",
    ),
    "a setting is wrong": (
        "[environment]\ncpus = 'many'\n",
        {"instruction.md": INSTRUCTION},
        "cpus",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_task_that_harbor_does_not_accept_is_refused(name: str, tmp_path: Path) -> None:
    toml, files, said = REFUSED[name]
    source = made_task(tmp_path, toml, files)
    with pytest.raises(TaskError, match=f"Harbor does not accept the task {source}") as caught:
        stage_task(source, tmp_path / "work" / "counting", DATA, [])
    assert said in str(caught.value)


BROKEN_STEPS: dict[str, dict[str, str]] = {
    "no directory": {"tests/test.sh": TEST},
    "no instruction": {"steps/one/x": "", "tests/test.sh": TEST},
}


@pytest.mark.parametrize("name", BROKEN_STEPS)
def test_a_task_that_lacks_a_step_is_refused(name: str, tmp_path: Path) -> None:
    files = {"steps/two/instruction.md": INSTRUCTION, **BROKEN_STEPS[name]}
    source = made_task(tmp_path, STEPS, files)
    with pytest.raises(TaskError, match="steps/one"):
        stage_task(source, tmp_path / "work" / "counting", DATA, [])


def test_an_instruction_that_cannot_be_written_is_the_tasks_fault(tmp_path: Path) -> None:
    source = made_task(tmp_path, "", {"instruction.md/x": ""})
    with pytest.raises(TaskError, match=r"instruction\.md"):
        stage_task(source, tmp_path / "work" / "counting", TEMPLATE, PROMPT)


def test_links_are_copied_as_links_and_not_written_through(tmp_path: Path) -> None:
    files = {"README.md": INSTRUCTION, "data/test.sh": TEST}
    source = made_task(tmp_path, "", files)
    (source / "instruction.md").symlink_to("README.md")
    (source / "tests").symlink_to(source / "data")
    (source / "environment" / "same").symlink_to("Dockerfile")
    staged = stage_task(source, tmp_path / "work" / "counting", TEMPLATE, PROMPT)
    assert staged.has_tests
    assert (staged.path / "README.md").read_text() == INSTRUCTION
    assert (staged.path / "instruction.md").read_text() == WRITTEN
    assert (staged.path / "environment" / "same").readlink() == Path("Dockerfile")
    assert (staged.path / "tests").resolve() == staged.path / "data"
    assert (source / "instruction.md").is_symlink()


def test_where_what_is_in_the_copy_is_in_the_task(tmp_path: Path) -> None:
    source = made_task(tmp_path, "", {"instruction.md": INSTRUCTION})
    staged = stage_task(source, tmp_path / "work" / "counting", DATA, [])
    assert staged.original(staged.environment_dir) == source / "environment"
    assert staged.original(staged.path / "tests") == staged.path / "tests"  # a placeholder's
    assert staged.original(tmp_path) == tmp_path


COMPOSE = {"environment/docker-compose.yaml": "services: {main: {}}"}
INSTRUCTED = {"instruction.md": INSTRUCTION}
TESTED = {**INSTRUCTED, "tests/test.sh": TEST}


@pytest.mark.parametrize(
    ("mode", "files", "in_place"),
    [
        (DATA, {**TESTED, **COMPOSE}, True),
        (DATA, TESTED, False),
        (DATA, {**INSTRUCTED, **COMPOSE}, False),  # its placeholder has to be written
        (TEMPLATE, {**TESTED, **COMPOSE}, False),
    ],
)
def test_a_task_with_services_may_be_left_where_it_lies(
    mode: TaskMode, files: dict[str, str], in_place: bool, tmp_path: Path
) -> None:
    source = made_task(tmp_path, "", files)
    before = tree(source)
    target = tmp_path / "work" / "counting"
    staged = stage_task(source, target, mode, PROMPT, in_place=True)
    assert staged.path == (source if in_place else target)
    assert staged.original(staged.environment_dir) == source / "environment"
    assert tree(source) == before


SEPARATE = "[verifier]\nenvironment_mode = 'separate'\n"
ALONE = "[[steps]]\nname = 'one'\n[steps.verifier]\nenvironment_mode = 'separate'\n"
STEP = {"steps/one/instruction.md": INSTRUCTION, "tests/test.sh": TEST}
TOLD: dict[str, tuple[str, dict[str, str], bool]] = {
    # task.toml, files, whether its author is told
    "nothing arrives at its verifier": (SEPARATE, TESTED, True),
    "an environment of its own is a separate one": ("[verifier.environment]\n", TESTED, True),
    "it declares artifacts": ("artifacts = ['/app/x']\n" + SEPARATE, TESTED, False),
    "its instruction names where they are collected": (
        SEPARATE,
        {**TESTED, "instruction.md": "Write it to /logs/artifacts/answer."},
        False,
    ),
    "its verifier shares the sandbox": ("", TESTED, False),
    "it has no tests": (SEPARATE, INSTRUCTED, False),
    "a step": (ALONE, STEP, True),
    "a step that declares its own": (
        ALONE.replace("[steps.", "artifacts = ['/x']\n[steps."),
        STEP,
        False,
    ),
    "a step by the task's mode": (SEPARATE + "[[steps]]\nname = 'one'\n", STEP, True),
}


@pytest.mark.parametrize("name", TOLD)
def test_the_author_of_a_task_whose_answer_cannot_arrive_is_told_once(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    toml, files, told = TOLD[name]
    source = made_task(tmp_path, toml, files)
    for attempt in "12":
        staged = stage_task(source, tmp_path / attempt / "counting", DATA, [])
        assert len(staged.notes) == told
    texts = [record.getMessage() for record in caplog.records]
    assert texts == list(staged.notes)
    assert all("counting" in text and "artifacts = […]" in text for text in texts)


@pytest.mark.parametrize("name", NAMES)
def test_the_tasks_that_ship_with_the_project_bring_tests(name: str, tmp_path: Path) -> None:
    staged = stage_task(DATASET / name, tmp_path / name, DATA, [])
    assert staged.has_tests
    assert tree(staged.path) == tree(DATASET / name)
