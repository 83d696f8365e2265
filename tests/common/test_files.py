"""Files that appear whole or not at all."""

from pathlib import Path

import pytest

from osmosis_ai.common.files import write_atomically


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.json"
    write_atomically(path, "first")
    write_atomically(path, "second é\n")
    assert path.read_text(encoding="utf-8") == "second é\n"
    assert [found.name for found in path.parent.iterdir()] == ["report.json"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert path.read_text(encoding="utf-8") == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["report.json"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    path = tmp_path / "report.json"
    path.symlink_to(elsewhere)
    write_atomically(path, "new")
    assert elsewhere.read_text() == "untouched"
    assert not path.is_symlink()
