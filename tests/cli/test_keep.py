"""``--keep``, Ctrl-C and SIGTERM: which sandboxes stay, and that they can be entered."""

import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from harbor_backend.places import labels

from .conftest import COMMAND, DATASET, ROOT, Osmosis, environment, run_of, sandboxes_of
from .test_trials import write_task

pytestmark = pytest.mark.docker


def remove(osmosis: Osmosis, containers: list[Any]) -> None:
    assert osmosis("sandboxes", "rm", *[c.name for c in containers]).code == 0


def enter(command: str, *what: str) -> str:
    """Do what the printed command does, without a terminal."""
    words = shlex.split(command)
    assert words[:3] == ["docker", "exec", "-it"]
    assert words[-1] in {"bash", "sh"}
    entered = ["docker", "exec", *words[3:], "-c", " ".join(what)]
    done = subprocess.run(entered, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def two_tasks(tmp_path: Path) -> Path:
    verify = "cp /app/score /logs/verifier/reward.txt"
    for name, score in (("bad", 0), ("good", 1)):
        solution = f"mkdir -p /app; echo {score} > /app/score"
        write_task(tmp_path / "tasks" / name, solution=solution, tests=verify)
    return tmp_path / "tasks"


def test_keep_failed_keeps_the_failed_one_only(
    osmosis: Osmosis, docker_engine: Any, two_tasks: Path
) -> None:
    done = osmosis("trials", "run", two_tasks, "--agent", "oracle", "--keep", "failed", "--json")
    left = sandboxes_of(docker_engine, run_of(done.json))
    try:
        bad, good = (task["trials"][0] for task in done.json["tasks"])
        assert (bad["reward"], good["reward"]) == (0.0, 1.0)
        assert [kept["name"] for kept in bad["kept"]] == [c.name for c in left]
        assert good["kept"] == []
        assert bad["kept"][0]["name"].startswith(labels.KEPT_PREFIX)
        assert enter(bad["kept"][0]["enter"], "cat /app/score") == "0"
        assert osmosis("sandboxes", "rm", "--stale").code == 0
        assert sandboxes_of(docker_engine, run_of(done.json)) == left
    finally:
        remove(osmosis, left)
    assert sandboxes_of(docker_engine, run_of(done.json)) == []


def test_keep_failed_goes_by_the_threshold(
    osmosis: Osmosis, docker_engine: Any, two_tasks: Path
) -> None:
    arguments = ("--agent", "oracle", "--keep", "failed", "--threshold", "0", "--json")
    done = osmosis("trials", "run", two_tasks, *arguments)
    assert done.code == 0
    assert sandboxes_of(docker_engine, run_of(done.json)) == []


def test_keep_all_prints_how_to_enter(
    osmosis: Osmosis, docker_engine: Any, two_tasks: Path
) -> None:
    done = osmosis("trials", "run", two_tasks / "good", "--agent", "oracle", "--keep", "all")
    assert done.code == 0
    command = next(line for line in done.out.splitlines() if "docker exec" in line)
    assert command.startswith("good #1 (running): ")
    printed = command.partition(": ")[2]
    try:
        assert enter(printed, "cat /app/score") == "1"
    finally:
        remove(osmosis, [docker_engine.containers.get(shlex.split(printed)[3])])


def test_a_compose_task_is_kept_whole_and_runs(osmosis: Osmosis, docker_engine: Any) -> None:
    arguments = ("--agent", "nop", "--keep", "failed", "--json")
    done = osmosis("trials", "run", DATASET / "kv-migrate", *arguments)
    left = sandboxes_of(docker_engine, run_of(done.json))
    try:
        (trial,) = done.json["tasks"][0]["trials"]
        assert trial["reward"] == 0.0
        assert {kept["state"] for kept in trial["kept"]} == {"running"}
        assert {c.labels["com.docker.compose.service"] for c in left} == {"main", "store"}
        main = next(kept for kept in trial["kept"] if "main" in kept["name"])
        fetched = "import socket; print(socket.gethostbyname('store') != '')"
        assert enter(main["enter"], f'python3 -c "{fetched}"') == "True"
        project = left[0].labels["com.docker.compose.project"]
    finally:
        remove(osmosis, left)
    networks = docker_engine.networks.list(
        filters={"label": f"com.docker.compose.project={project}"}
    )
    assert networks == []


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
@pytest.mark.parametrize("keep", ["none", "all"])
def test_a_signal_ends_trials_and_removes_their_sandboxes(
    docker_engine: Any, results: Path, tmp_path: Path, sent: signal.Signals, code: int, keep: str
) -> None:
    task = write_task(tmp_path / f"waits-{keep}-{sent.value}", solution="sleep 600", tests="true")
    with subprocess.Popen(
        [*COMMAND, "trials", "run", task, "--agent", "oracle", "--keep", keep, "--json"],
        cwd=ROOT,
        env=environment(results),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            found = wait_for_sandbox(docker_engine, task.name)
            process.send_signal(sent)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert len(found) == 1
    assert (process.returncode, out) == (code, "")
    assert err.count("\n") == 1
    assert "sandboxes removed" in err
    assert _of_task(docker_engine, task.name) == []


def wait_for_sandbox(engine: Any, task: str) -> list[Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if found := _of_task(engine, task):
            return found
        time.sleep(0.1)
    pytest.fail(f"no sandbox of {task} came up")


def _of_task(engine: Any, task: str) -> list[Any]:
    found = engine.containers.list(all=True, ignore_removed=True, filters={"label": labels.SANDBOX})
    return [c for c in found if c.labels[labels.ROLLOUT].startswith(f"{task}-")]
