"""Where sockets and locks lie: reachable from a sandbox, and for nobody else."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harbor_backend.places.channel_dir import make_channel_dir, private_dir


@pytest.fixture(autouse=True)
def temp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary directory with nothing in it, under a short path."""
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as path:
        monkeypatch.setattr(tempfile, "tempdir", path)
        yield Path(path)


def test_others_cannot_reach_in_and_a_sandbox_can(temp: Path) -> None:
    path = make_channel_dir()
    assert path.parent == private_dir() == temp / f"osmosis-{os.getuid()}"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert make_channel_dir() != path


@pytest.mark.parametrize("mode", [0o777, 0o750, 0o701])
def test_a_directory_that_others_can_reach_is_refused(temp: Path, mode: int) -> None:
    path = temp / f"osmosis-{os.getuid()}"
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(PermissionError, match=r"this user alone \(mode 0700\)"):
        make_channel_dir()


def test_a_link_in_its_place_is_refused(temp: Path) -> None:
    (temp / "elsewhere").mkdir(mode=0o700)
    (temp / f"osmosis-{os.getuid()}").symlink_to(temp / "elsewhere")
    with pytest.raises(PermissionError):
        private_dir()


def test_a_long_temporary_directory_leaves_room_for_a_socket(
    temp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(temp / ("x" * 100)))
    assert len(str(private_dir())) < 60
