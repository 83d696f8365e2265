"""What the task files at the repository's root run, run here: on this machine's Docker."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.harbor_backend.rollouts.conftest import ROOT

pytestmark = pytest.mark.docker

KEY = "the-key-of-the-rollout-server"

type Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Runs a file's ``run`` section as SkyPilot does, with its ``envs`` and further variables."""
    home = tmp_path / "home"
    (home / "osmosis-venv" / "bin").mkdir(parents=True)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    (home / "osmosis-venv" / "bin" / "activate").write_text(f'PATH="{path}"\n')
    started: list[subprocess.Popen[str]] = []

    def run(name: str, **variables: str) -> subprocess.Popen[str]:
        task: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())
        process = subprocess.Popen(
            ["bash", "-c", task["run"]],
            cwd=ROOT,
            env={
                **{k: v for k, v in os.environ.items() if not k.startswith("OSMOSIS_")},
                **task["envs"],
                "HOME": str(home),
                "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
                **variables,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _until_said(process: subprocess.Popen[str], text: str) -> str:
    said = ""
    for line in process.stdout or ():
        said += line
        if text in line:
            return said
    pytest.fail(f"it ended with {process.wait()}: {said}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_server_is_ready_when_health_answers(start: Start, tmp_path: Path) -> None:
    port = _free_port()
    server = start(
        "skypilot.yaml",
        SANDBOXES="docker",
        DATA_DIR=str(tmp_path / "data"),
        PORT=str(port),
        OSMOSIS_ROLLOUT_API_KEY=KEY,
    )
    said = _until_said(server, "ready: /health answers")
    assert KEY not in said
    url = f"http://127.0.0.1:{port}/health"
    assert httpx.get(url).status_code == 401
    assert httpx.get(url, headers={"Authorization": f"Bearer {KEY}"}).json()["backend"] == "harbor"
    assert (tmp_path / "data" / "rollouts").is_dir()
    server.send_signal(signal.SIGTERM)
    assert server.wait(60) in {0, 143}
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)


def test_a_server_that_does_not_start_fails_the_job(start: Start, tmp_path: Path) -> None:
    server = start(
        "skypilot.yaml",
        SANDBOXES="docker",
        TASK_DIR="tasks/no-such-task",
        DATA_DIR=str(tmp_path / "data"),
        PORT=str(_free_port()),
        OSMOSIS_ROLLOUT_API_KEY=KEY,
    )
    out, _ = server.communicate(timeout=60)
    assert server.returncode not in {0, None}
    assert "no-such-task" in out


def test_a_server_without_its_secret_says_so(start: Start) -> None:
    server = start("skypilot.yaml", SANDBOXES="docker")
    out, _ = server.communicate(timeout=60)
    assert server.returncode != 0
    assert "give it with --secret OSMOSIS_ROLLOUT_API_KEY" in out


@pytest.mark.parametrize(("agent", "code"), [("oracle", 0), ("nop", 1)])
def test_the_job_fails_below_its_threshold(
    start: Start, tmp_path: Path, agent: str, code: int
) -> None:
    job = start(
        "skypilot.job.yaml",
        ENVIRONMENT="docker",
        AGENT=agent,
        ONLY="free-slots",
        RESULTS_DIR=str(tmp_path / "results"),
        SKYPILOT_TASK_ID="sky-managed-1",
    )
    out, _ = job.communicate(timeout=200)
    assert job.returncode == code, out
    assert (tmp_path / "results" / "sky-managed-1" / "report.json").is_file()
