"""Real trials through the real command: rewards, exit codes, JSON, tables, progress."""

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import DATASET, ROOT, Osmosis, run_of, sandboxes_of

pytestmark = pytest.mark.docker

FLAT = ROOT / "tests" / "projects" / "flat"


def write_task(path: Path, *, dockerfile: str = "", solution: str = "", tests: str = "") -> Path:
    """A task on the base image; without ``tests`` it has no verifier of its own."""
    for folder in ("environment", "solution"):
        (path / folder).mkdir(parents=True)
    (path / "task.toml").write_text('[environment]\nnetwork_mode = "no-network"\n')
    (path / "instruction.md").write_text("Double 21.\n")
    (path / "environment" / "Dockerfile").write_text(f"FROM python:3.12-slim\n{dockerfile}\n")
    (path / "solution" / "solve.sh").write_text(f"#!/bin/bash\n{solution}\n")
    if tests:
        (path / "tests").mkdir()
        (path / "tests" / "test.sh").write_text(f"#!/bin/bash\n{tests}\n")
    return path


@pytest.mark.parametrize(("agent", "reward", "code"), [("oracle", 1.0, 0), ("nop", 0.0, 1)])
def test_a_dataset_in_json(
    osmosis: Osmosis, results: Path, docker_engine: Any, agent: str, reward: float, code: int
) -> None:
    chosen = ("--task", "free-slots", "--task", "kv-migrate", "--threshold", "0.9")
    done = osmosis("trials", "run", DATASET, "--agent", agent, *chosen, "--json")
    assert done.code == code
    document = done.json
    assert {key: document[key] for key in ("agent", "n_trials", "mean_reward", "passed")} == {
        "agent": agent,
        "n_trials": 2,
        "mean_reward": reward,
        "passed": code == 0,
    }
    assert [task["task"] for task in document["tasks"]] == ["free-slots", "kv-migrate"]
    trials = [task["trials"][0] for task in document["tasks"]]
    assert [trial["reward"] for trial in trials] == [reward, reward]
    assert {trial["status"] for trial in trials} == {"success"}
    assert trials[0]["environment"] == "osmosis-docker"
    for trial in trials:
        assert Path(trial["logs"]) == results / trial["rollout_id"] / "logs"
        assert (results / trial["rollout_id"] / "logs" / "verifier" / "reward.txt").exists()
        assert trial["seconds"] > 0
    assert sandboxes_of(docker_engine, run_of(document)) == []
    lines = done.err.splitlines()
    assert sorted(line.partition("]")[0] for line in lines) == ["[1/2", "[2/2"]


def test_attempts_in_a_table(osmosis: Osmosis, results: Path) -> None:
    done = osmosis("trials", "run", DATASET / "free-slots", "--agent", "oracle", "--attempts", "3")
    assert done.code == 0
    header, row, *_ = done.out.splitlines()
    assert header.split() == ["TASK", "REWARDS", "MEAN", "STATUS", "SECONDS", "LOGS"]
    assert row.split()[:6] == ["free-slots", "1", "1", "1", "1.000", "success"]
    assert row.split()[-1].startswith(f"{results}/free-slots-{{1,2,3}}-")
    assert "mean reward 1.000 over 3 trials" in done.out
    assert len([path for path in results.iterdir() if (path / "logs").is_dir()]) == 3


def test_output_says_where_results_go(osmosis: Osmosis, results: Path, tmp_path: Path) -> None:
    output = tmp_path / "elsewhere"
    done = osmosis(
        "trials", "run", DATASET / "log-report", "--agent", "oracle", "--output", output, "--json"
    )
    assert done.code == 0
    assert json.loads((output / "report.json").read_text()) == done.json
    assert Path(done.json["tasks"][0]["trials"][0]["logs"]).parent.parent == output
    assert not results.exists()


def test_a_workflow_from_the_current_directory_with_its_grader(
    osmosis: Osmosis, tmp_path: Path
) -> None:
    tasks = tmp_path / "tasks"
    write_task(tasks / "doubling")
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[project]\nname = "cli-rollout"\nversion = "1"\ndependencies = ["osmosis-ai"]\n'
    )
    (project / "answers.py").write_text(
        "from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowOutput, Grader\n"
        "class Answer(AgentWorkflow):\n"
        "    async def run(self, ctx):\n"
        "        said = {'role': 'assistant', 'content': '42'}\n"
        "        return AgentWorkflowOutput(messages=[*ctx.prompt, said])\n"
        "class Check(Grader):\n"
        "    async def grade(self, ctx):\n"
        "        first, *_, last = ctx.sample.messages\n"
        "        ctx.set_reward(float('21' in first['content'] and last['content'] == '42'))\n"
    )
    done = osmosis(
        *("trials", "run", tasks, "--agent", "answers:Answer", "--grader", "answers:Check"),
        *("--model", "embedded/echo", "--json"),
        cwd=project,
    )
    (trial,) = done.json["tasks"][0]["trials"]
    assert (done.code, trial["reward"], trial["message"]) == (0, 1.0, None)
    trajectory = json.loads(Path(trial["trajectory"]).read_text())
    assert trajectory["steps"][-1]["message"] == "42"


def test_a_workflow_that_scores_nothing_is_no_failure_without_a_threshold(
    osmosis: Osmosis,
) -> None:
    arguments = ("--agent", "main:DoublingWorkflow", "--json")
    done = osmosis("trials", "run", DATASET / "free-slots", *arguments, cwd=FLAT)
    # Its instruction holds no number to double, or the double of one: wrong in both cases.
    assert done.json["mean_reward"] == 0.0
    assert done.code == 0


def test_a_task_that_cannot_be_run_is_a_failure_beside_one_that_can(
    osmosis: Osmosis, tmp_path: Path
) -> None:
    write_task(tmp_path / "good", tests="echo 1 > /logs/verifier/reward.txt")
    write_task(tmp_path / "unbuildable", dockerfile="RUN echo about to fail && exit 7")
    done = osmosis("trials", "run", tmp_path, "--agent", "oracle", "--json")
    assert done.code == 1
    assert (done.json["could_not_run"], done.json["failed"], done.json["passed"]) == (1, 1, False)
    good, unbuildable = (task["trials"][0] for task in done.json["tasks"])
    assert good["reward"] == 1.0
    assert unbuildable["could_run"] is False
    assert "about to fail" in unbuildable["message"]


def test_a_failing_agent_counts_as_zero_and_is_explained(osmosis: Osmosis, tmp_path: Path) -> None:
    task = write_task(tmp_path / "slow", solution="sleep 60", tests="exit 0")
    (task / "task.toml").write_text("[agent]\ntimeout_sec = 1.0\n")
    done = osmosis("trials", "run", tmp_path, "--agent", "oracle")
    assert done.code == 0
    row = done.out.splitlines()[1].split()
    assert row[:4] == ["slow", "-", "0.000", "timeout"]
    assert "slow #1: timeout: " in done.out
