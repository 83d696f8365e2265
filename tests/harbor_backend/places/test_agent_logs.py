"""What Harbor must not open among an agent's logs."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harbor_backend.places.agent_logs import set_aside_unreadable
from harbor_backend.places.limits import MAX_TRAJECTORY_BYTES


def large(path: Path) -> None:
    path.touch()
    os.truncate(path, MAX_TRAJECTORY_BYTES + 1)


UNREADABLE: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a pipe": ("trajectory.json", os.mkfifo),
    "a pipe elsewhere": ("sessions/deep/log.txt", os.mkfifo),
    "a link": ("trajectory.json", lambda path: path.symlink_to("/etc/passwd")),
    "a link to a directory": ("sessions", lambda path: path.symlink_to("/etc")),
    "large": ("trajectory.json", large),
    "large lines": ("sessions/a.jsonl", large),
    "no text": ("trajectory.json", lambda path: path.write_bytes(b"{\xff}")),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_is_set_aside(case: str, tmp_path: Path) -> None:
    name, make = UNREADABLE[case]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)
    (told,) = set_aside_unreadable(tmp_path)
    assert told.startswith(f"The agent's {name} is not read: ")
    assert not os.path.lexists(path)
    assert os.path.lexists(f"{path}.set-aside")
    assert set_aside_unreadable(tmp_path) == []


def test_what_stays(tmp_path: Path) -> None:
    (tmp_path / "trajectory.json").write_text("{}")
    (tmp_path / "binary.json").write_bytes(b"\xff")
    large(tmp_path / "output.txt")
    assert set_aside_unreadable(tmp_path) == []
    assert set_aside_unreadable(tmp_path / "none") == []
    assert len(list(tmp_path.iterdir())) == 3
