"""Which file of a trial goes where, and what does not go at all."""

import logging
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harbor_backend.trial import archive
from harbor_backend.trial.archive import archive_trial
from osmosis_ai.rollout.container.supervisor.transfer import MAX_DEPTH

type Make = Callable[[Path, Path], None]

# Harbor's file: ours, below the rollout's directory; None: it stays behind.
PLACES: dict[str, str | None] = {
    "trial.log": "logs/trial.log",
    "exception.txt": "logs/exception.txt",
    "result.json": "logs/result.json",
    "agent/workflow.log": "logs/agent/workflow.log",
    "agent/trajectory.json": "logs/agent/trajectory.json",
    "verifier/grader.log": "logs/verifier/grader.log",
    "verifier/reward.txt": "logs/verifier/reward.txt",
    "steps/one/agent/workflow.log": "logs/steps/one/agent/workflow.log",
    "artifacts/logs/artifacts/report.txt": "artifacts/report.txt",
    "artifacts/logs/artifacts/deep/er/report.txt": "artifacts/deep/er/report.txt",
    "artifacts/logs/artifacts/manifest.json": "artifacts/manifest.json",
    "artifacts/logs/artifacts/.hidden": "artifacts/.hidden",
    "artifacts/app/out.csv": "artifacts/app/out.csv",
    "artifacts/out.csv": "artifacts/out.csv",
    "artifacts/logs/server.log": "artifacts/logs/server.log",
    "artifacts/logs/agent/own.log": "artifacts/logs/agent/own.log",
    "config.json": "logs/config.json",
    "lock.json": "logs/lock.json",
    "other/file.txt": None,
}


def written(folder: Path, name: str, text: str = "content") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def archived(root: Path) -> list[str]:
    """Everything that is there now of the rollout, but for directories with something in them."""
    folder = root / "r-1"
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if not path.is_dir() or path.is_symlink() or not any(path.iterdir())
    )


@pytest.mark.parametrize("name", PLACES)
def test_where_a_file_goes(name: str, tmp_path: Path) -> None:
    written(tmp_path / "trial", name)
    assert archive_trial(tmp_path / "trial", tmp_path / "root", "r-1") == []
    target = PLACES[name]
    assert archived(tmp_path / "root") == ([] if target is None else [target])
    if target is not None:
        assert (tmp_path / "root" / "r-1" / target).read_text() == "content"


def test_all_of_them_together(tmp_path: Path) -> None:
    for name in PLACES:
        written(tmp_path / "trial", name, name)
    assert archive_trial(tmp_path / "trial", tmp_path / "root", "r-1") == []
    kept = {target: name for name, target in PLACES.items() if target is not None}
    assert archived(tmp_path / "root") == sorted(kept)
    for target, name in kept.items():
        assert (tmp_path / "root" / "r-1" / target).read_text() == name


def test_a_trial_without_a_directory(tmp_path: Path) -> None:
    assert archive_trial(tmp_path / "none", tmp_path / "root", "r-1") == []
    assert not (tmp_path / "root").exists()


def test_what_is_there_already_stays_beside_it(tmp_path: Path) -> None:
    written(tmp_path / "root" / "r-1", "artifacts/by-the-server.txt")
    written(tmp_path / "root" / "r-1", "artifacts/report.txt", "old")
    written(tmp_path / "trial", "artifacts/logs/artifacts/report.txt", "new")
    assert archive_trial(tmp_path / "trial", tmp_path / "root", "r-1") == []
    assert archived(tmp_path / "root") == ["artifacts/by-the-server.txt", "artifacts/report.txt"]
    assert (tmp_path / "root" / "r-1" / "artifacts" / "report.txt").read_text() == "new"


def fifo(path: Path, _: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            server.bind(f"/proc/self/fd/{here}/{path.name}")
        finally:
            os.close(here)


def link_to_a_file(path: Path, outside: Path) -> None:
    path.symlink_to(written(outside, "secret.txt", "secret"))


def link_to_a_directory(path: Path, outside: Path) -> None:
    written(outside, "folder/secret.txt", "secret")
    path.symlink_to(outside / "folder")


def link_to_nothing(path: Path, outside: Path) -> None:
    path.symlink_to(outside / "nothing")


def link_to_itself(path: Path, _: Path) -> None:
    path.symlink_to(path.name)


def link_that_climbs_out(path: Path, _: Path) -> None:
    path.symlink_to("../" * len(path.parts) + "etc/passwd")


LEFT_OUT = [
    fifo,
    unix_socket,
    link_to_a_file,
    link_to_a_directory,
    link_to_nothing,
    link_that_climbs_out,
]
IN_A_FOLDER = ["artifacts/logs/artifacts", "artifacts/app", "agent", "verifier", "steps/one"]


@pytest.mark.parametrize("make", LEFT_OUT, ids=lambda make: make.__name__)
@pytest.mark.parametrize("folder", IN_A_FOLDER)
def test_links_and_special_files_stay_behind(folder: str, make: Make, tmp_path: Path) -> None:
    beside = written(tmp_path / "trial", f"{folder}/beside.txt")
    make(beside.parent / "odd", tmp_path / "outside")
    (problem,) = archive_trial(tmp_path / "trial", tmp_path / "root", "r-1")
    assert problem.startswith("1 special files or unsafe links in ")
    (name,) = archived(tmp_path / "root")
    assert name.endswith("beside.txt")


def test_links_that_stay_inside_go_as_links(tmp_path: Path) -> None:
    artifacts = tmp_path / "trial" / "artifacts" / "logs" / "artifacts"
    written(artifacts, "runs/3/model.bin")
    (artifacts / "latest").symlink_to("runs/3")
    (artifacts / "runs" / "3" / "again").symlink_to("../3/model.bin")
    assert archive_trial(tmp_path / "trial", tmp_path / "root", "r-1") == []
    kept = tmp_path / "root" / "r-1" / "artifacts"
    assert os.readlink(kept / "latest") == "runs/3"
    assert (kept / "latest" / "again").read_text() == "content"


def test_links_cannot_lead_out_together(tmp_path: Path) -> None:
    """Each stays inside by its name; through the other, the second would not."""
    agent = tmp_path / "trial" / "agent"
    written(agent, "a/b/c/log.txt")
    written(tmp_path / "root" / "r-1" / "logs", "secret.txt", "secret")
    (agent / "a" / "b" / "up").symlink_to("../..")
    (agent / "a" / "b" / "out").symlink_to("up/../secret.txt")
    (problem,) = archive_trial(tmp_path / "trial", tmp_path / "root", "r-1")
    assert problem == "1 special files or unsafe links in agent were left out"
    assert not os.path.lexists(tmp_path / "root" / "r-1" / "logs" / "agent" / "a" / "b" / "out")


def test_a_file_larger_than_the_budget_stays_behind_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_DOWNLOAD_BYTES", 1000)
    for name in ("a.txt", "z.txt"):
        written(tmp_path / "trial", f"artifacts/app/{name}")
    with (tmp_path / "trial" / "artifacts" / "app" / "sparse").open("wb") as file:
        file.truncate(10 * 1024**4)
    (problem,) = archive_trial(tmp_path / "trial", tmp_path / "root", "r-1")
    assert problem.startswith("artifacts/app/sparse was not archived: it holds 10995116277760 byte")
    assert archived(tmp_path / "root") == ["artifacts/app/a.txt", "artifacts/app/z.txt"]


def test_more_files_than_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_DOWNLOAD_ENTRIES", 3)
    for number in range(5):
        written(tmp_path / "trial", f"artifacts/app/{number}.txt")
    (problem,) = archive_trial(tmp_path / "trial", tmp_path / "root", "r-1")
    assert problem.startswith("artifacts/app was not archived: more than 3 files")
    assert archived(tmp_path / "root") == ["artifacts/app/0.txt", "artifacts/app/1.txt"]


@pytest.mark.parametrize(
    "name",
    [
        "trial.log",
        "agent",
        "artifacts",
        "artifacts/app",
        "artifacts/logs",
        "artifacts/logs/artifacts",
        "artifacts/logs/server",
    ],
)
def test_a_link_in_place_of_what_is_copied_is_not_followed(name: str, tmp_path: Path) -> None:
    written(tmp_path / "outside", "secret.txt", "secret")
    path = tmp_path / "trial" / name
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "outside")
    assert len(archive_trial(tmp_path / "trial", tmp_path / "root", "r-1")) == 1
    kept = (tmp_path / "root").rglob("*")
    assert not [path for path in kept if path.is_symlink() or not path.is_dir()]


def test_a_link_in_the_rollouts_directory_is_not_written_through(tmp_path: Path) -> None:
    outside = written(tmp_path / "outside", "kept.txt", "old")
    (tmp_path / "root" / "r-1" / "logs").mkdir(parents=True)
    (tmp_path / "root" / "r-1" / "logs" / "trial.log").symlink_to(outside)
    written(tmp_path / "trial", "trial.log", "new")
    assert archive_trial(tmp_path / "trial", tmp_path / "root", "r-1") == []
    assert outside.read_text() == "old"
    assert (tmp_path / "root" / "r-1" / "logs" / "trial.log").read_text() == "new"


def test_problems_are_returned_and_the_rest_is_copied(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("trial.log", "agent/workflow.log", "artifacts/logs/artifacts/report.txt"):
        written(tmp_path / "trial", name)
    written(tmp_path / "root" / "r-1", "artifacts", "a file where a directory should be")
    with caplog.at_level(logging.WARNING):
        problems = archive_trial(tmp_path / "trial", tmp_path / "root", "r-1")
    (problem,) = problems
    assert problem.startswith("artifacts/logs/artifacts was not archived: ")
    assert archived(tmp_path / "root") == ["artifacts", "logs/agent/workflow.log", "logs/trial.log"]
    assert [record.getMessage() for record in caplog.records] == [f"Rollout r-1: {problem}"]


@pytest.fixture
def trial_of_anybody() -> Iterator[Path]:
    """A trial's directory that any user of this machine could read."""
    with tempfile.TemporaryDirectory(prefix="osmosis-archive-", dir="/tmp") as folder:
        path = Path(folder, "trial")
        for name in ("trial.log", "agent/workflow.log", "artifacts/logs/server.log"):
            written(path, name)
        for each in (Path(folder), *Path(folder).rglob("*")):
            each.chmod(0o777)
        yield path


@contextmanager
def no_root() -> Iterator[None]:
    """Without root's right to read everything: sandboxes may write files that we cannot read."""
    mine = os.geteuid()
    os.seteuid(_NOBODY if mine == 0 else mine)
    try:
        yield
    finally:
        os.seteuid(mine)


_NOBODY = 65534
UNREADABLE = [
    pytest.param("trial.log", "trial.log", id="a log"),
    pytest.param("agent/workflow.log", "agent", id="a file of a directory"),
    pytest.param("artifacts/logs/server.log", "artifacts/logs/server.log", id="an artifact"),
    pytest.param("agent", "agent", id="a directory"),
    pytest.param("artifacts", "artifacts", id="all artifacts"),
    pytest.param("artifacts/logs", "artifacts/logs", id="a directory of them"),
]


@pytest.mark.parametrize(("name", "named"), UNREADABLE)
def test_what_cannot_be_read_is_a_problem(name: str, named: str, trial_of_anybody: Path) -> None:
    (trial_of_anybody / name).chmod(0)
    try:
        with no_root():
            problems = archive_trial(trial_of_anybody, trial_of_anybody.parent / "root", "r-1")
    finally:
        (trial_of_anybody / name).chmod(0o777)
    assert problems[-1].startswith(f"{named} was not archived: [Errno 13] Permission denied")


def test_directories_that_are_too_deep_are_a_problem(tmp_path: Path) -> None:
    written(tmp_path / "trial", "agent/" + "d/" * (MAX_DEPTH + 1) + "leaf")
    written(tmp_path / "trial", "verifier/grader.log")
    (problem,) = archive_trial(tmp_path / "trial", tmp_path / "root", "r-1")
    assert problem.startswith("agent was not archived: ")
    assert "logs/verifier/grader.log" in archived(tmp_path / "root")


def test_a_disk_that_is_full_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "trial", "agent/one.log")
    written(tmp_path / "trial", "verifier/two.log")
    opened = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "one.log":
            raise OSError(28, "No space left on device")
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    problems = archive_trial(tmp_path / "trial", tmp_path / "root", "r-1")
    assert problems == ["agent was not archived: [Errno 28] No space left on device"]
    assert archived(tmp_path / "root") == ["logs/agent", "logs/verifier/two.log"]


def test_artifacts_that_nobody_needs_any_more_are_moved(tmp_path: Path) -> None:
    own = tmp_path / "trial" / "artifacts" / "logs" / "artifacts"
    names = ("report.txt", "deep/er/report.txt")
    inodes = [written(own, name).stat().st_ino for name in names]
    written(tmp_path / "trial", "agent/workflow.log")
    (tmp_path / "root" / "r-1" / "artifacts").mkdir(parents=True)
    assert archive_trial(tmp_path / "trial", tmp_path / "root", "r-1", move=True) == []
    kept = tmp_path / "root" / "r-1" / "artifacts"
    assert [(kept / name).stat().st_ino for name in names] == inodes
    assert (tmp_path / "trial" / "agent" / "workflow.log").is_file()


def hard_link(path: Path, outside: Path) -> None:
    written(outside, "secret.txt", "secret")
    os.link(outside / "secret.txt", path)


@pytest.mark.parametrize("make", [*LEFT_OUT, hard_link], ids=lambda make: make.__name__)
def test_nothing_moves_that_has_to_be_looked_at(make: Make, tmp_path: Path) -> None:
    beside = written(tmp_path / "trial", "artifacts/app/d/beside.txt")
    make(beside.parent / "odd", tmp_path / "outside")
    problems = archive_trial(tmp_path / "trial", tmp_path / "root", "r-1", move=True)
    assert len(problems) == (make is not hard_link)
    kept = tmp_path / "root" / "r-1" / "artifacts" / "app" / "d"
    assert (kept / "beside.txt").stat().st_ino != beside.stat().st_ino
    if make is hard_link:
        assert (kept / "odd").stat().st_nlink == 1
    else:
        assert not os.path.lexists(kept / "odd")


@pytest.mark.parametrize("limit", ["MAX_DOWNLOAD_BYTES", "MAX_DOWNLOAD_ENTRIES"])
def test_what_moves_counts_for_the_budget(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, limit, 5)
    for number in range(3):
        written(tmp_path / "trial", f"artifacts/{number}/a", "four")
    assert archive_trial(tmp_path / "trial", tmp_path / "root", "r-1", move=True) != []
    assert len([name for name in archived(tmp_path / "root") if name.endswith("/a")]) in {1, 2}
