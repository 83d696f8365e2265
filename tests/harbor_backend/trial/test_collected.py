"""Declared artifacts that are missing, replaced or cut: each is told, and none passes for whole."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harbor_backend.trial.archive import archive_trial

CONVENTION = {"source": "/logs/artifacts", "destination": "artifacts/logs/artifacts"}
OUT = {"source": "/app/out.csv", "destination": "artifacts/app/out.csv", "type": "file"}


def listed(folder: Path, *entries: dict[str, Any]) -> None:
    """Harbor's list of what it collected."""
    folder.mkdir(parents=True, exist_ok=True)
    filled = [{"type": "directory", "status": "ok", **entry} for entry in entries]
    (folder / "manifest.json").write_text(json.dumps(filled))


def files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("content")


def archived(tmp_path: Path) -> tuple[list[str], list[str]]:
    """What was told of the trial, and which artifacts were kept."""
    problems = archive_trial(tmp_path / "trial", tmp_path / "root", "r-1")
    kept = tmp_path / "root" / "r-1" / "artifacts"
    return problems, sorted(str(p.relative_to(kept)) for p in kept.rglob("*") if p.is_file())


def test_nothing_is_told_of_what_was_collected(tmp_path: Path) -> None:
    folder = tmp_path / "trial" / "artifacts"
    listed(
        folder,
        {**CONVENTION, "status": "empty"},
        OUT,
        {"source": "/app/data", "destination": "artifacts/app/data"},
        {**OUT, "source": "/app/data/in.csv", "destination": "artifacts/app/data/in.csv"},
        {
            **OUT,
            "source": "/app/data/more.csv",
            "destination": "artifacts/app/data/more.csv",
            "status": "skipped",
        },
    )
    files(folder, "app/out.csv", "app/data/in.csv", "app/data/more.csv")
    problems, kept = archived(tmp_path)
    assert problems == []
    assert kept == ["app/data/in.csv", "app/data/more.csv", "app/out.csv"]


LOST: dict[str, tuple[dict[str, Any], str]] = {
    "missing": (
        {**OUT, "status": "failed"},
        "The declared artifact /app/out.csv is missing: it was not there when the agent had ended, "
        "or its fetch failed",
    ),
    "of a service": (
        {**OUT, "status": "failed", "service": "db"},
        "The declared artifact /app/out.csv of the service 'db' is missing: it was not there when "
        "the agent had ended, or its fetch failed",
    ),
    "a special file": (
        OUT,
        "The declared artifact /app/out.csv is missing: it was not there when the agent had ended, "
        "or is a special file",
    ),
    "a collision": (
        {**OUT, "status": "skipped"},
        "The declared artifact /app/out.csv was not collected: another one lies at "
        "artifacts/app/out.csv already",
    ),
    "the directory that everybody has": (
        {**CONVENTION, "status": "failed"},
        "/logs/artifacts was not collected: it is no directory any more, or its fetch failed",
    ),
    "a place outside": (
        {**OUT, "destination": "artifacts/../../../etc/passwd"},
        "The declared artifact /app/out.csv was not collected: Harbor names "
        "'artifacts/../../../etc/passwd' as its place",
    ),
}


@pytest.mark.parametrize("case", LOST)
def test_what_was_not_collected_is_told(case: str, tmp_path: Path) -> None:
    entry, expected = LOST[case]
    listed(tmp_path / "trial" / "artifacts", entry)
    assert archived(tmp_path) == ([expected], [])


def test_an_artifact_that_another_one_should_hold(tmp_path: Path) -> None:
    skipped = {"source": "/logs/artifacts/a", "destination": "artifacts/logs/artifacts/a"}
    listed(tmp_path / "trial" / "artifacts", CONVENTION, {**skipped, "status": "skipped"})
    (tmp_path / "trial" / "artifacts" / "logs" / "artifacts").mkdir(parents=True)
    (problem,) = archived(tmp_path)[0]
    assert problem.startswith("The declared artifact /logs/artifacts/a is missing")


def test_a_step_is_named(tmp_path: Path) -> None:
    listed(tmp_path / "trial" / "steps" / "one" / "artifacts", {**OUT, "status": "failed"})
    (problem,) = archived(tmp_path)[0]
    assert problem.endswith(" in the step 'one'")


@pytest.mark.parametrize("names", [["app/out.csv"], ["app/out.csv/a", "app/out.csv/b"]])
def test_what_was_cut_does_not_pass_for_whole(names: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "trial" / "artifacts"
    listed(folder, {**OUT, "status": "failed"})
    files(folder, *names)
    (problem,), kept = archived(tmp_path)
    assert problem == (
        "The declared artifact /app/out.csv was not fetched whole; what came is in "
        "artifacts/app/out.csv.incomplete"
    )
    assert kept == [name.replace("out.csv", "out.csv.incomplete") for name in names]


def test_own_artifacts_that_were_cut(tmp_path: Path) -> None:
    folder = tmp_path / "trial" / "artifacts"
    listed(folder, {**CONVENTION, "status": "failed"})
    files(folder, "logs/artifacts/report.txt")
    (problem,), kept = archived(tmp_path)
    assert problem.startswith("/logs/artifacts was not fetched whole")
    assert kept == ["logs/artifacts.incomplete/report.txt"]


def _text(text: str) -> Any:
    return lambda path: path.write_text(text)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


UNREADABLE: dict[str, Any] = {
    "no list": _text("{}x"),
    "deep": _text("[" * 100_000),
    "other entries": _text("[1]"),
    "large": lambda path: os.truncate(path, 10 * 1024**3),
    "a pipe": pipe,
    "a link": lambda path: (path.unlink(), path.symlink_to("/etc/passwd")),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_list_that_cannot_be_read_is_told(case: str, tmp_path: Path) -> None:
    folder = tmp_path / "trial" / "artifacts"
    listed(folder, OUT)
    UNREADABLE[case](folder / "manifest.json")
    (first, *_), kept = archived(tmp_path)
    assert first.startswith("Harbor's list of artifacts cannot be read: ")
    assert kept == []


def test_harbors_list_is_kept_beside_the_logs(tmp_path: Path) -> None:
    folder = tmp_path / "trial" / "artifacts"
    listed(folder, {**CONVENTION, "status": "empty"})
    assert archived(tmp_path) == ([], [])
    kept = tmp_path / "root" / "r-1" / "logs" / "artifacts" / "manifest.json"
    assert kept.read_text() == (folder / "manifest.json").read_text()
