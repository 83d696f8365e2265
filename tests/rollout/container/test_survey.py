"""A look at the processes of a machine, by the program that a sandbox runs."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from osmosis_ai.rollout.container import survey


def look(agent_sec: float, *, delay_sec: float = 0.0, closed: str = "") -> list[str]:
    """What the program finds when it comes to look so much later than it was asked."""
    source = Path(survey.__file__).read_text()
    asked_at = str(time.time() - delay_sec)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", source, str(agent_sec), asked_at, closed],
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[str] = json.loads(done.stdout)["processes"]
    return found


def test_what_began_after_the_agent_is_found_however_late_the_look() -> None:
    with subprocess.Popen(["sleep", "4321"]) as process:
        time.sleep(0.2)
        try:
            mine = f"{process.pid} sleep 4321"
            assert mine in look(1.0)
            time.sleep(0.5)
            assert mine not in look(0.0)
            assert mine in look(0.1, delay_sec=5.0)
        finally:
            process.kill()


def test_neither_itself_nor_what_it_comes_from() -> None:
    numbers = {int(line.split()[0]) for line in look(3600.0 * 24 * 365)}
    assert not numbers & {1, *_parents()}


def _parents() -> set[int]:
    found, process = set(), Path("/proc/self").resolve().name
    while process != "0":
        found.add(int(process))
        process = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]
    return found


@pytest.mark.skipif(Path("/proc/self").stat().st_uid != 0, reason="only root gives files away")
def test_a_directory_is_closed_whatever_is_in_its_place(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o777)
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(elsewhere)
    subprocess.run(["mkfifo", pipe], check=True)
    for path in (link, pipe, tmp_path / "new" / "one", elsewhere):
        look(0.0, closed=str(path))
        assert path.is_dir()
        assert not path.is_symlink()
        assert path.stat().st_mode & 0o777 == 0o755
