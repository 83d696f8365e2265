"""Real trials through the real command: rewards, exit codes, JSON, tables, progress."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from harbor.models.trial.result import TrialResult
from harbor.viewer.server import create_app

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


@pytest.mark.parametrize("environment", ["docker", "harbor-docker"])
def test_force_build_builds_what_a_task_names_an_image_for(
    osmosis: Osmosis, results: Path, tmp_path: Path, environment: str
) -> None:
    tests = "ls /built; echo $((! $?)) > /logs/verifier/reward.txt"
    task = write_task(tmp_path / "t", dockerfile="RUN touch /built", solution="true", tests=tests)
    (task / "task.toml").write_text('[environment]\ndocker_image = "python:3.12-slim"\n')
    for arguments, reward in (((), 0.0), (("--force-build",), 1.0)):
        fixed = ("trials", "run", task, "--agent", "oracle", "--environment", environment, "--json")
        assert osmosis(*fixed, *arguments).json["mean_reward"] == reward


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
        "import httpx\n"
        "from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowOutput, Grader\n"
        "from osmosis_ai.rollout import get_rollout_context\n"
        "class Answer(AgentWorkflow):\n"
        "    async def run(self, ctx):\n"
        "        url = get_rollout_context().chat_completions_url\n"
        "        async with httpx.AsyncClient(base_url=url) as model:\n"
        "            asked = {'model': 'm', 'messages': ctx.prompt}\n"
        "            await model.post('/chat/completions', json=asked)\n"
        "        said = {'role': 'assistant', 'content': '42'}\n"
        "        return AgentWorkflowOutput(messages=[*ctx.prompt, said])\n"
        "class Check(Grader):\n"
        "    async def grade(self, ctx):\n"
        "        first, *_, last = ctx.sample.messages\n"
        "        ctx.set_reward(float('21' in first['content'] and last['content'] == '42'))\n"
    )
    done = osmosis(
        *("trials", "run", tasks, "--agent", "answers:Answer", "--grader", "answers:Check"),
        *("--model", "embedded/echo", "--json", "--output", tmp_path / "job"),
        cwd=project,
    )
    (trial,) = done.json["tasks"][0]["trials"]
    assert (done.code, trial["reward"], trial["message"]) == (0, 1.0, None)
    trajectory = json.loads(Path(trial["trajectory"]).read_text())
    assert trajectory["steps"][-1]["message"] == "42"
    assert trajectory["steps"][-1]["metrics"]["prompt_tokens"] > 0
    assert trajectory["extra"]["osmosis"]["request_metadata"] == {"harbor_task_id": "doubling"}
    (recorded,) = (tmp_path / "job").glob("*/result.json")
    result = TrialResult.model_validate_json(recorded.read_text())
    assert (result.agent_info.name, result.reward_valid) == ("answers:Answer", True)
    assert result.agent_result is not None
    assert result.agent_result.n_input_tokens == trajectory["steps"][-1]["metrics"]["prompt_tokens"]
    assert Path(trial["trajectory"]).samefile(recorded.parent / "agent" / "trajectory.json")
    viewer = TestClient(create_app(tmp_path))
    (shown,) = viewer.get("/api/jobs/job/trials").json()["items"]
    assert (shown["task_name"], shown["reward"]) == ("doubling", 1.0)
    shown = viewer.get(f"/api/jobs/job/trials/{trial['rollout_id']}/trajectory").json()
    assert shown["steps"][-1]["message"] == "42"


def test_a_workflow_that_scores_nothing_is_no_failure_without_a_threshold(
    osmosis: Osmosis,
) -> None:
    arguments = ("--agent", "main:DoublingWorkflow", "--json")
    done = osmosis("trials", "run", DATASET / "free-slots", *arguments, cwd=FLAT)
    # Its instruction holds no number to double, or the double of one: wrong in both cases.
    assert done.json["mean_reward"] == 0.0
    assert done.code == 0


def test_tasks_that_cannot_be_run_are_failures_beside_one_that_can(
    osmosis: Osmosis, tmp_path: Path
) -> None:
    """Each trial that was asked for is in the report, with its reason."""
    write_task(tmp_path / "good", tests="echo 1 > /logs/verifier/reward.txt")
    (write_task(tmp_path / "linked") / "data").symlink_to("/etc")
    write_task(tmp_path / "unbuildable", dockerfile="RUN echo about to fail && exit 7")
    job = tmp_path / "job"
    arguments = ("--attempts", "2", "--output", job, "--json")
    done = osmosis("trials", "run", tmp_path, "--agent", "oracle", *arguments)
    assert done.code == 1
    counts = json.loads((job / "result.json").read_text())["stats"]
    assert (counts["n_completed_trials"], counts["n_errored_trials"]) == (6, 4)
    assert "not collected" not in done.err
    assert {key: done.json[key] for key in ("n_trials", "could_not_run", "failed", "passed")} == {
        "n_trials": 6,
        "could_not_run": 4,
        "failed": 4,
        "passed": False,
    }
    good, linked, unbuildable = (task["trials"] for task in done.json["tasks"])
    assert [trial["reward"] for trial in good] == [1.0, 1.0]
    for trials, said in ((linked, "data -> /etc leaves the task"), (unbuildable, "about to fail")):
        assert [trial["could_run"] for trial in trials] == [False, False]
        assert all(said in trial["message"] for trial in trials)
    assert linked[0]["category"] == "validation_error"


def test_a_dataset_of_a_registry(osmosis: Osmosis, tmp_path: Path) -> None:
    """A task that cannot be fetched is no result, and the others run."""
    made = write_task(tmp_path / "made", tests="echo 1 > /logs/verifier/reward.txt")
    tasks = [
        {"name": "made", "path": str(made)},
        {"name": "away", "path": "x", "git_url": "https://127.0.0.1:9/org/name"},
    ]
    dataset = {"name": "sums", "version": "1.0", "description": "", "tasks": tasks}
    (tmp_path / "registry.json").write_text(json.dumps([dataset]))
    arguments = ("--registry-path", tmp_path, "--agent", "oracle", "--json")
    done = osmosis("trials", "run", "sums@1.0", *arguments)
    assert (done.code, done.json["n_trials"], done.json["could_not_run"]) == (1, 2, 1)
    found, lost = (task["trials"][0] for task in done.json["tasks"])
    assert (found["reward"], found["category"]) == (1.0, None)
    assert lost["category"] == "infrastructure_error"
    assert "Failed to connect" in lost["message"]


def test_a_late_agent_is_scored_by_what_it_left(osmosis: Osmosis, tmp_path: Path) -> None:
    """One whose tests give no reward has none, which is not a 0."""
    serve = "cd /srv && python3 -m http.server 8000 &\necho 42 > /srv/answer\nsleep 60"
    fetch = (
        "from urllib.request import urlopen; print(urlopen('http://127.0.0.1:8000/answer').read())"
    )
    tests = {
        "served": f'python3 -c "{fetch}" | grep -q 42 && echo 0.5 > /logs/verifier/reward.txt',
        "score": "echo '{\"score\": 0.25}' > /logs/verifier/reward.json",
        "silent": "exit 0",
    }
    for name, script in tests.items():
        task = write_task(tmp_path / name, solution=serve, tests=script)
        (task / "task.toml").write_text("[agent]\ntimeout_sec = 2.0\n")
    done = osmosis("trials", "run", tmp_path, "--agent", "oracle", "--json")
    assert done.code == 0
    document = done.json
    assert document["endings"] == {
        "scored": 0,
        "scored_agent_failed": 2,
        "no_result": 1,
        "not_run": 0,
    }
    assert (document["n_scored"], document["mean_reward"]) == (2, 0.375)
    trials = {task["task"]: task["trials"][0] for task in document["tasks"]}
    assert {name: trial["reward"] for name, trial in trials.items()} == {
        "served": 0.5,
        "score": 0.25,
        "silent": None,
    }
    assert trials["score"]["rewards"] == {"score": 0.25}
    for trial in trials.values():
        assert (trial["category"], trial["phase"]) == ("timeout", "agent")
        assert "timed out" in trial["message"]
