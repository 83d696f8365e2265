"""What ``osmosis trials run`` refuses before anything runs: one line, what, where, remedy."""

from pathlib import Path

import pytest

from .conftest import DATASET, ROOT, Done, Osmosis

FLAT = ROOT / "tests" / "projects" / "flat"


def refused(done: Done, *texts: str, code: int = 2) -> None:
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("osmosis: ")
    assert done.err.count("\n") == 1
    for text in texts:
        assert text in done.err


def write_task(path: Path) -> Path:
    (path / "environment").mkdir(parents=True)
    (path / "environment" / "Dockerfile").write_text("FROM python:3.12-slim\n")
    (path / "task.toml").write_text("")
    (path / "instruction.md").write_text("Wait.\n")
    return path


def test_a_folder_that_is_not_there(osmosis: Osmosis, tmp_path: Path) -> None:
    done = osmosis("trials", "run", tmp_path / "none", "--agent", "nop")
    refused(done, f"{tmp_path}/none does not exist", "give a folder of Harbor tasks")


def test_a_file(osmosis: Osmosis) -> None:
    refused(osmosis("trials", "run", "pyproject.toml", "--agent", "nop"), "is a file")


def test_a_folder_without_any_task(osmosis: Osmosis, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    done = osmosis("trials", "run", tmp_path, "--agent", "nop")
    refused(done, f"{tmp_path} holds no task", "task.toml")


@pytest.mark.parametrize(
    ("harm", "text"),
    [
        (lambda task: (task / "instruction.md").unlink(), "no instruction.md"),
        (lambda task: (task / "task.toml").write_text("[agent"), "task.toml is not valid"),
        (
            lambda task: (task / "data").symlink_to("/etc"),
            "data -> /etc leaves the task",
        ),
    ],
    ids=["no instruction", "broken toml", "symlink"],
)
def test_a_broken_task(osmosis: Osmosis, tmp_path: Path, harm: object, text: str) -> None:
    task = write_task(tmp_path / "tasks" / "broken")
    assert callable(harm)
    harm(task)
    refused(osmosis("trials", "run", tmp_path / "tasks", "--agent", "nop"), text, "broken")


def test_a_folder_of_broken_tasks(osmosis: Osmosis, tmp_path: Path) -> None:
    """A few reasons are enough; where one task can run, it does."""
    for number in range(5):
        task = write_task(tmp_path / f"broken-{number}")
        (task / "instruction.md").unlink()
    done = osmosis("trials", "run", tmp_path, "--agent", "nop")
    refused(done, "broken-0", "broken-2", "(and 2 more)")
    assert "broken-3" not in done.err


@pytest.mark.parametrize(
    ("arguments", "texts", "code"),
    [
        (["sums@1.0", "--registry-path", "none"], ("The registry none is no file",), 2),
        (
            ["sums@1.0", "--registry-url", "http://127.0.0.1:9/"],
            ("The dataset sums@1.0 cannot be fetched", "connection attempts failed"),
            1,
        ),
        (["https://127.0.0.1:9/org/name"], ("git ls-remote failed", "Failed to connect"), 1),
        (["https://x.example"], ("Could not parse org/name",), 2),
        (["x@1", "--registry-path", "a", "--registry-url", "b"], ("exclude each other",), 2),
        (["x@1/y"], ("The dataset x@1/y",), 2),
    ],
)
def test_a_dataset_that_cannot_be_had(
    osmosis: Osmosis, arguments: list[str], texts: tuple[str, ...], code: int
) -> None:
    refused(osmosis("trials", "run", *arguments, "--agent", "nop"), *texts, code=code)


def test_an_unknown_task(osmosis: Osmosis) -> None:
    done = osmosis("trials", "run", DATASET, "--agent", "nop", "--task", "no-such-task")
    refused(done, "--task no-such-task", "free-slots", str(DATASET))


@pytest.mark.parametrize(
    ("agent", "texts"),
    [
        ("wizard", ("agent='wizard'", "oracle", "module:Class")),
        ("main:Missing", ("main does not export 'Missing'",)),
        ("no_such_module:Agent", ("'no_such_module:Agent' cannot be imported",)),
        ("main:DoublingGrader", ("must be a subclass of AgentWorkflow",)),
    ],
)
def test_an_agent_that_cannot_be_used(osmosis: Osmosis, agent: str, texts: tuple[str, ...]) -> None:
    refused(osmosis("trials", "run", DATASET, "--agent", agent, cwd=FLAT), *texts)


def test_a_grader_that_cannot_be_used(osmosis: Osmosis) -> None:
    arguments = ("--agent", "nop", "--grader", "main:DoublingWorkflow")
    refused(osmosis("trials", "run", DATASET, *arguments, cwd=FLAT), "subclass of Grader")


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("gpt", "neither the base URL"),
        ("embedded/oracle", "choose one of echo, multiply"),
        ("embedded/multiply?wrong=5x", "embedded/multiply"),
    ],
)
def test_a_model_that_cannot_be_used(osmosis: Osmosis, model: str, text: str) -> None:
    arguments = ("--agent", "main:DoublingWorkflow", "--model", model)
    refused(osmosis("trials", "run", DATASET, *arguments, cwd=FLAT), text, f"--model {model}")


def test_a_model_for_an_agent_that_has_none(osmosis: Osmosis) -> None:
    done = osmosis("trials", "run", DATASET, "--agent", "nop", "--model", "embedded/echo")
    refused(done, "--model is for workflows", "'nop' is native")


def test_a_threshold_that_is_no_number(osmosis: Osmosis) -> None:
    done = osmosis("trials", "run", DATASET, "--agent", "nop", "--threshold", "nan")
    refused(done, "--threshold nan")


@pytest.mark.parametrize(
    "command", [("trials", "run", str(DATASET), "--agent", "nop"), ("sandboxes", "ls")]
)
def test_an_engine_that_does_not_answer(osmosis: Osmosis, command: tuple[str, ...]) -> None:
    done = osmosis(*command, env={"DOCKER_HOST": "unix:///nonexistent"})
    refused(done, "unix:///nonexistent does not answer", "DOCKER_HOST", code=1)
