"""What a download sends, an upload makes: the two against each other on real trees."""

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from osmosis_ai.rollout.container.supervisor.frames import (
    CHUNK,
    DATA,
    ENTRY,
    HEADER,
    INNER,
    MANY,
    MAX_FRAME,
    each,
    pack,
)
from osmosis_ai.rollout.container.supervisor.transfer import Batch, Download, Upload

MIB = 1024 * 1024


def copy(source: Path, target: Path, max_bytes: int = 16 * MIB, max_entries: int = 1000) -> int:
    """Move a tree through frames; returns how many files were skipped."""
    upload = Upload(str(target))

    def send(kind: int, payload: bytes) -> None:
        assert HEADER.size + len(payload) <= MAX_FRAME
        if kind == ENTRY:
            upload.entry(json.loads(payload))
        else:
            assert kind == DATA
            upload.data(payload)

    download = Download(send, max_bytes, max_entries)
    try:
        download.tree(str(source))
    finally:
        upload.close()
    return download.skipped


def snapshot(root: Path) -> dict[bytes, Any]:
    """Kind, mode and content of everything below ``root``."""
    found: dict[bytes, Any] = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            content: Any = None
            if stat.S_ISLNK(info.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(info.st_mode):
                content = Path(os.fsdecode(path)).read_bytes()
            mode = 0 if stat.S_ISLNK(info.st_mode) else stat.S_IMODE(info.st_mode)
            key = os.path.relpath(path, os.fsencode(root))
            found[key] = (stat.S_IFMT(info.st_mode), mode, content)
    return found


names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=8
).filter(lambda name: name not in {".", ".."})
files = st.tuples(st.just("file"), st.binary(max_size=100), st.sampled_from([0o644, 0o755, 0o400]))
links = st.tuples(st.just("link"), names)
trees = st.recursive(
    files | links,
    lambda inner: st.tuples(st.just("dir"), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)


def make(path: Path, tree: tuple[Any, ...]) -> None:
    match tree:
        case ("file", data, mode):
            path.write_bytes(data)
            path.chmod(mode)
        case ("link", target):
            path.symlink_to(target)
        case ("dir", children):
            path.mkdir(0o755)
            for name, child in children.items():
                make(path / name, child)


@settings(deadline=None)
@given(st.dictionaries(names, trees, max_size=3))
def test_any_tree_arrives_as_it_was(children: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch, "source"), Path(scratch, "target")
        make(source, ("dir", children))
        assert copy(source, target) == 0
        assert snapshot(target) == snapshot(source)
        copy(source, target)  # and again over itself
        assert snapshot(target) == snapshot(source)


@pytest.mark.parametrize("size", [0, 1, CHUNK, 4 * CHUNK, 4 * CHUNK + 1, 3 * MIB])
def test_one_file(tmp_path: Path, size: int) -> None:
    source, target = tmp_path / "a", tmp_path / "deep" / "er" / "b"
    source.write_bytes(os.urandom(size))
    source.chmod(0o750)
    copy(source, target)
    assert target.read_bytes() == source.read_bytes()
    assert stat.S_IMODE(target.stat().st_mode) == 0o750


def test_names_that_are_no_text(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with open(os.fsencode(source) + b"/\xff\xfe", "wb") as file:
        file.write(b"x")
    copy(source, tmp_path / "target")
    assert os.listdir(os.fsencode(tmp_path / "target")) == [b"\xff\xfe"]


def test_a_link_at_the_top_is_followed_and_links_below_are_not(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "real" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "top").symlink_to(tmp_path / "real")
    copy(tmp_path / "top", tmp_path / "target")
    assert os.readlink(tmp_path / "target" / "link") == str(tmp_path / "secret")
    assert not (tmp_path / "target").is_symlink()


@pytest.mark.parametrize("dangling", [False, True])
def test_an_upload_replaces_a_link_instead_of_writing_through_it(
    tmp_path: Path, dangling: bool
) -> None:
    victim = tmp_path / "victim"
    if not dangling:
        victim.write_text("untouched")
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    (source / "a").write_text("new")
    (source / "l").symlink_to("new-target")
    (target / "a").symlink_to(victim)
    (target / "l").symlink_to(victim)
    copy(source, target)
    assert (target / "a").read_text() == "new"
    assert not (target / "a").is_symlink()
    assert os.readlink(target / "l") == "new-target"
    assert victim.read_text() == "untouched" if not dangling else not victim.exists()


def test_special_files_are_skipped_and_counted(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_text("a")
    os.mkfifo(source / "pipe")
    assert copy(source, tmp_path / "target") == 1
    assert os.listdir(tmp_path / "target") == ["a"]


def test_setuid_does_not_travel(tmp_path: Path) -> None:
    source = tmp_path / "a"
    source.write_text("x")
    source.chmod(0o4755)
    copy(source, tmp_path / "b")
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o755


def test_a_budget_of_bytes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_bytes(b"x" * 60)
    (source / "b").write_bytes(b"x" * 40)
    copy(source, tmp_path / "fits", max_bytes=100)
    with pytest.raises(ValueError, match="more than 99 bytes"):
        copy(source, tmp_path / "over", max_bytes=99)


def test_a_budget_of_entries(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(4):
        (source / str(number)).touch()
    copy(source, tmp_path / "fits", max_entries=5)
    with pytest.raises(ValueError, match="more than 4 entries"):
        copy(source, tmp_path / "over", max_entries=4)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        copy(tmp_path / "nowhere", tmp_path / "target")
    assert not (tmp_path / "target").exists()


@given(st.integers(0, 2**32 - 1), st.integers(0, 255), st.binary(max_size=50))
def test_frames(channel: int, kind: int, payload: bytes) -> None:
    frame = pack(channel, kind, payload)
    assert HEADER.unpack_from(frame) == (channel, kind, len(payload))
    assert frame[HEADER.size :] == payload


@given(st.lists(st.tuples(st.sampled_from([ENTRY, DATA]), st.binary() | st.just(b"x" * 20_000))))
def test_frames_that_come_together_are_those_that_were_sent(sent: list[tuple[int, bytes]]) -> None:
    received: list[tuple[int, bytes]] = []

    def send(kind: int, payload: bytes) -> None:
        assert HEADER.size + len(payload) <= MAX_FRAME
        received.extend(each(kind, payload))

    batch = Batch(send)
    for kind, payload in sent:
        batch.add(kind, payload)
    batch.flush()
    assert received == sent


@pytest.mark.parametrize("payload", [b"x", INNER.pack(ENTRY, 3) + b"ab"])
def test_frames_that_come_together_and_are_cut(payload: bytes) -> None:
    with pytest.raises(ValueError, match="ends within a"):
        list(each(MANY, payload))
