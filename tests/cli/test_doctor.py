"""``osmosis doctor``: what it finds here, and what it finds where something is wrong."""

import os
from pathlib import Path

import pytest

from osmosis_ai.cli.doctor.engine import pid_files
from osmosis_ai.cli.doctor.findings import Level
from osmosis_ai.cli.doctor.machine import disk

from .conftest import Osmosis


@pytest.mark.docker
def test_a_machine_that_is_set_up(osmosis: Osmosis) -> None:
    done = osmosis("doctor", "--json")
    checks = {check["name"]: check for check in done.json["checks"]}
    assert done.code == 0
    assert done.json["ok"] is True
    for name in ("interpreter", "packages", "uv", "patchelf", "engine", "compose", "buildx"):
        assert checks[name]["level"] == "ok", checks[name]
    assert {"base image", "sandboxes", "pid file", "buildkit", "runtime cache"} <= set(checks)
    assert {"disk (engine)", "disk (cache)", "disk (results)"} <= set(checks)
    for check in checks.values():
        assert (check["remedy"] is None) == (check["level"] == "ok")


@pytest.mark.docker
def test_the_report_for_people(osmosis: Osmosis) -> None:
    done = osmosis("doctor")
    assert done.code == 0
    assert done.err == ""
    levels = [line[:4].strip() for line in done.out.splitlines() if not line.startswith(" ")]
    assert set(levels) <= {"ok", "warn"}


def test_an_engine_that_does_not_answer_fails_with_a_remedy(osmosis: Osmosis) -> None:
    done = osmosis("doctor", env={"DOCKER_HOST": "unix:///nonexistent"})
    assert done.code == 1
    lines = done.out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("fail engine"))
    assert "unix:///nonexistent does not answer" in lines[at]
    assert "unset DOCKER_HOST" in lines[at + 1]
    assert "base image" not in done.out


def test_an_address_that_is_not_supported(osmosis: Osmosis) -> None:
    done = osmosis("doctor", "--json", env={"DOCKER_HOST": "ssh://host"})
    assert (done.code, done.json["ok"]) == (1, False)
    engine = next(check for check in done.json["checks"] if check["name"] == "engine")
    assert "ssh://host" in engine["detail"]


def test_a_machine_without_a_docker_client(osmosis: Osmosis, tmp_path: Path) -> None:
    done = osmosis("doctor", "--json", env={"PATH": str(tmp_path)})
    levels = {check["name"]: check["level"] for check in done.json["checks"]}
    assert (levels["compose"], levels["buildx"]) == ("warn", "warn")


def write_process(proc: Path, pid: int, name: str, state: str = "S (sleeping)") -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "status").write_text(f"Name:\t{name}\nState:\t{state}\n")


@pytest.mark.parametrize(
    ("name", "state", "stale"),
    [
        ("dockerd", "S (sleeping)", False),
        ("dockerd", "Z (zombie)", True),
        ("bash", "S (sleeping)", True),
        (None, "", True),
    ],
)
@pytest.mark.parametrize(("answers", "level"), [(True, Level.WARN), (False, Level.FAIL)])
def test_pid_files(
    tmp_path: Path, name: str | None, state: str, stale: bool, answers: bool, level: Level
) -> None:
    run, proc = tmp_path / "run", tmp_path / "proc"
    run.mkdir()
    (run / "docker.pid").write_text("4242\n")
    if name is not None:
        write_process(proc, 4242, name, state)
    (finding,) = pid_files(answers=answers, run=run, proc=proc)
    assert finding.level is (level if stale else Level.OK)
    assert finding.remedy is None or f"rm {run}/docker.pid" in finding.remedy


def test_a_pid_file_that_holds_no_number(tmp_path: Path) -> None:
    (tmp_path / "docker.pid").write_text("\n")
    (finding,) = pid_files(answers=False, run=tmp_path, proc=Path("/proc"))
    assert finding.level is Level.FAIL


def test_the_disk_of_a_directory_that_is_not_there_yet(tmp_path: Path) -> None:
    finding = disk("disk", tmp_path / "a" / "b")
    assert str(tmp_path) in finding.detail
    assert finding.name == "disk"
    assert os.path.isdir(tmp_path)
