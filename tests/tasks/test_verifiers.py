"""A verifier knows more than the agent saw, and does not take its answers from the solution."""

from pathlib import Path

import pytest

from .dataset import DATASET, NAMES

PHASES = [
    phase
    for name in NAMES
    for phase in (sorted((DATASET / name / "steps").glob("*")) or [DATASET / name])
]
PHASE_IDS = [str(phase.relative_to(DATASET)) for phase in PHASES]


def visible(task: Path) -> list[Path]:
    """The files that the agent's container is built from or given."""
    folders = (task / "environment", *task.glob("steps/*/workdir"))
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def hidden(task: Path) -> list[Path]:
    folders = ("tests", "solution", "steps/*/tests", "steps/*/solution")
    return [
        path
        for pattern in folders
        for folder in task.glob(pattern)
        for path in folder.rglob("*")
        if path.is_file()
    ]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_hidden_is_in_the_agents_container(name: str) -> None:
    task = DATASET / name
    shown = {path.read_bytes(): path for path in visible(task) if path.stat().st_size}
    leaked = [path.relative_to(task) for path in hidden(task) if path.read_bytes() in shown]
    assert leaked == ([Path("tests/slow_pairs.py")] if name == "close-pairs" else [])


def test_close_pairs_measures_against_the_program_that_the_agent_was_given() -> None:
    task = DATASET / "close-pairs"
    given, baseline = task / "environment/pairs.py", task / "tests/slow_pairs.py"
    assert given.read_text() == baseline.read_text()


@pytest.mark.parametrize("phase", PHASES, ids=PHASE_IDS)
def test_the_verifier_does_not_use_the_solution(phase: Path) -> None:
    users = [p.name for p in (phase / "tests").rglob("*") if "/solution" in p.read_text()]
    assert users == []


@pytest.mark.parametrize("phase", PHASES, ids=PHASE_IDS)
def test_the_script_closes_the_tests_first_and_writes_the_reward_last(phase: Path) -> None:
    lines = (phase / "tests/test.sh").read_text().splitlines()
    commands = [line for line in lines if line and not line.startswith("#")]
    assert commands[0] == "chmod 700 /tests"
    assert "/logs/verifier/reward." in commands[-1]
    assert not [line for line in commands if line.startswith(("set -e", "exit", "exec"))]


@pytest.mark.parametrize("name", NAMES)
def test_the_instruction_does_not_point_at_the_grading(name: str) -> None:
    texts = [path.read_text() for path in (DATASET / name).rglob("instruction.md")]
    assert texts
    for text in texts:
        assert "/tests" not in text
        assert "/logs" not in text
        assert "reward.json" not in text
