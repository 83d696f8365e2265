"""Stages run side by side, and read as if they had not."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.scripts.shell import LIB, bash

STAGES = """
stage left first 'echo first begins; sleep 0.5; echo first ends'
stage right second 'echo second begins; sleep 0.1; echo second ends; exit 3'
stage right third 'echo third'
"""


def test_each_stages_output_is_whole(tmp_path: Path) -> None:
    done = bash(f"{STAGES}\nrun_stages {tmp_path} || echo failed", "stages")
    lines = [line for line in done.stdout.splitlines() if not line.startswith("setup: ")]
    blocks = [["second begins", "second ends"], ["third"], ["first begins", "first ends"]]
    assert lines == [*blocks[0], *blocks[1], *blocks[2], "failed"]
    assert "setup: second: ended with 3" in done.stdout
    assert "setup: first: ended with 0" in done.stdout


@pytest.mark.parametrize(
    ("lanes", "seen"), [(["a", "a", "a"], 1), (["a", "b", "a", "b"], 2), (["a", "a", "a-b"], 2)]
)
def test_stages_of_a_lane_follow_each_other(tmp_path: Path, lanes: list[str], seen: int) -> None:
    (tmp_path / "running").mkdir()
    script = "".join(
        f"stage {lane} s{n} 'cd {tmp_path}/running; touch {n}; sleep 0.8; ls | wc -l; rm {n}'\n"
        for n, lane in enumerate(lanes)
    )
    done = bash(f"{script}\nrun_stages {tmp_path}", "stages")
    counts = [int(line) for line in done.stdout.splitlines() if line.strip().isdigit()]
    assert done.returncode == 0
    assert len(counts) == len(lanes)
    assert max(counts) == seen


def test_what_a_stage_starts_can_be_interrupted(tmp_path: Path) -> None:
    script = "stage lane one 'grep SigIgn /proc/self/status'"
    done = bash(f"{script}\nrun_stages {tmp_path}", "stages")
    (ignored,) = (line.split()[1] for line in done.stdout.splitlines() if "SigIgn" in line)
    assert not int(ignored, 16) >> (signal.SIGINT - 1) & 1


def test_a_run_that_is_ended_ends_its_stages(tmp_path: Path) -> None:
    script = f"stage lane one 'echo $$ >{tmp_path}/pid; sleep 300'\nrun_stages {tmp_path}"
    sources = f"set -euo pipefail\n. {LIB}/say.sh\n. {LIB}/stages.sh\n"
    with subprocess.Popen(["/bin/bash", "-c", sources + script], text=True) as running:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        running.terminate()
        assert running.wait(timeout=20) == 1
    stage = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while Path(f"/proc/{stage}/exe").exists():
        assert time.monotonic() < deadline, "the stage still runs"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("lines", "passed", "failed"),
    [
        ("== 5 passed in 1.00s ==", 5, 0),
        ("== 1 failed, 5 passed, 2 skipped, 1 error in 1.00s ==\n== 7 passed in 2s ==", 12, 2),
        ("== 3 errors in 1.00s ==", 0, 3),
        ("== no tests ran in 0.01s ==", 0, 0),
    ],
)
def test_counts_are_summed(lines: str, passed: int, failed: int) -> None:
    script = f"lines='{lines}'; count passed <<<$lines; count failed errors error <<<$lines"
    assert bash(script, "stages").stdout.split() == [str(passed), str(failed)]
