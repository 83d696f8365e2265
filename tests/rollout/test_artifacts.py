"""Where a rollout's files land."""

import logging
from pathlib import Path

import pytest

from osmosis_ai.rollout.artifacts import (
    ARTIFACT_ROOT_ENV,
    artifact_root,
    provision_artifacts_dir,
    set_aside_previous,
)


def test_root_is_absolute_and_overridable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ARTIFACT_ROOT_ENV, str(tmp_path))
    assert artifact_root() == tmp_path
    monkeypatch.setenv(ARTIFACT_ROOT_ENV, "relative")
    assert artifact_root() == Path.cwd() / "relative"
    monkeypatch.setenv(ARTIFACT_ROOT_ENV, "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert artifact_root() == tmp_path / "home" / ".osmosis"


@pytest.mark.parametrize("rollout_id", ["r1", "a b:c", "naïve №1 \U0001f600"])
def test_provisioned_under_the_id(tmp_path: Path, rollout_id: str) -> None:
    directory = provision_artifacts_dir(tmp_path / "new", rollout_id)
    assert directory == tmp_path / "new" / rollout_id / "artifacts"
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize("rollout_id", ["again", "\U0001f600" * 60, "x" * 255])
def test_reused_id_sets_the_old_files_aside(tmp_path: Path, rollout_id: str) -> None:
    for turn in range(3):
        directory = provision_artifacts_dir(tmp_path, rollout_id)
        assert directory is not None
        assert list(directory.iterdir()) == []
        (directory / "log.txt").write_text(str(turn))
        (directory.parent / "trajectory.json").write_text(str(turn))

    kept = sorted((tmp_path / ".replaced").iterdir())
    assert [(old / "artifacts" / "log.txt").read_text() for old in kept] == ["0", "1"]
    assert [(old / "trajectory.json").read_text() for old in kept] == ["0", "1"]


def test_a_link_in_the_way_is_moved_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / "r1").symlink_to(outside, target_is_directory=True)
    directory = provision_artifacts_dir(root, "r1")
    assert directory is not None
    (directory / "log.txt").write_text("mine")
    assert list(outside.iterdir()) == []


def test_nothing_to_set_aside(tmp_path: Path) -> None:
    set_aside_previous(tmp_path, "new")
    assert list(tmp_path.iterdir()) == []


def test_unwritable_root_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a directory")
    with caplog.at_level(logging.WARNING):
        assert provision_artifacts_dir(in_the_way, "r1") is None
    # Other libraries' threads may log meanwhile.
    assert len([record for record in caplog.records if record.name.startswith("osmosis_ai")]) == 1
    assert "no artifacts directory" in caplog.text
    assert in_the_way.read_text() == "not a directory"


def test_id_too_long_for_a_file_name(tmp_path: Path) -> None:
    assert provision_artifacts_dir(tmp_path, "x" * 300) is None
