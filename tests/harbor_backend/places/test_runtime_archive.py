"""A runtime as one archive: whole, root's, told by its key, and packed once."""

import tarfile
from pathlib import Path

import pytest

from harbor_backend.places.runtime_archive import ARCHIVE, KEY_FILE, runtime_archive
from harbor_backend.places.skypilot.images import image_reference


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """A published runtime in little."""
    path = tmp_path / "runtimes" / "0123456789abcdef"
    (path / "python" / "bin").mkdir(parents=True)
    program = path / "python" / "bin" / "python3.12"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    (path / "python" / "bin" / "python3").symlink_to("python3.12")
    return path


def test_the_archive_holds_the_runtime_and_its_key(runtime: Path, tmp_path: Path) -> None:
    with (
        runtime_archive(runtime, tmp_path / "cache") as entry,
        tarfile.open(entry.path / ARCHIVE) as archive,
    ):
        members = {member.name: member for member in archive}
        key = archive.extractfile(KEY_FILE)
        assert key is not None
        assert key.read().decode() == runtime.name
    assert members["python/bin/python3.12"].mode == 0o755
    assert members["python/bin/python3"].linkname == "python3.12"
    assert {(member.uid, member.gid, member.uname) for member in members.values()} <= {
        (0, 0, "root"),
        (0, 0, ""),
    }


def test_it_is_packed_once(runtime: Path, tmp_path: Path) -> None:
    with runtime_archive(runtime, tmp_path / "cache") as first:
        made = (first.path / ARCHIVE).stat()
    with runtime_archive(runtime, tmp_path / "cache") as second:
        assert (second.path / ARCHIVE).stat().st_mtime_ns == made.st_mtime_ns


def test_an_image_is_addressed_by_what_it_is_made_of_and_the_runtime(runtime: Path) -> None:
    plain = image_reference("ghcr.io/team", "My Task/1", "0a1b", None)
    assert plain == "ghcr.io/team/my-task/1:0a1b"
    baked = image_reference("ghcr.io/team", "My Task/1", "0a1b", runtime)
    assert baked == f"{plain}-{runtime.name[:12]}"
