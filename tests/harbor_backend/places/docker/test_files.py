"""Files on their way into a sandbox and out of it."""

import os
import socket
import stat
from pathlib import Path

import pytest

from harbor_backend.places.docker import download as docker_module
from harbor_backend.places.docker.environment import DockerEnvironment
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.places.docker.conftest import Make

pytestmark = pytest.mark.docker

NAMES = ["plain", "with space", "-rf", "--", "new\nline", "ünï", "日本", "'\"$(id)`", "a" * 200]


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


async def test_a_file_goes_in_and_comes_back(sandbox: DockerEnvironment, tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    (tmp_path / "in").write_bytes(data)
    await sandbox.upload_file(tmp_path / "in", "/new/folder/file")
    await sandbox.download_file("/new/folder/file", tmp_path / "back" / "out")
    assert (tmp_path / "back" / "out").read_bytes() == data


async def test_an_empty_file(sandbox: DockerEnvironment, tmp_path: Path) -> None:
    (tmp_path / "in").touch()
    await sandbox.upload_file(str(tmp_path / "in"), "/empty")
    await sandbox.download_file("/empty", str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == b""


@pytest.mark.parametrize("target", ["/opt", "/opt/"])
async def test_a_file_uploaded_to_a_directory_keeps_its_name(
    sandbox: DockerEnvironment, tmp_path: Path, target: str
) -> None:
    (tmp_path / "name.txt").write_text("x")
    await sandbox.upload_file(tmp_path / "name.txt", target)
    assert (await sandbox.exec("cat /opt/name.txt")).stdout == "x"


async def test_an_upload_replaces_what_was_there(
    sandbox: DockerEnvironment, tmp_path: Path
) -> None:
    await sandbox.exec("echo old old old > /file; ln -s /etc/passwd /link; mkfifo /pipe")
    (tmp_path / "in").write_text("new")
    for target in ("/file", "/link", "/pipe"):
        await sandbox.upload_file(tmp_path / "in", target)
    done = await sandbox.exec("cat /file /link /pipe; test -f /pipe && head -c4 /etc/passwd")
    assert done.stdout == "newnewnewroot"


async def test_a_tree_keeps_names_modes_and_links(
    sandbox: DockerEnvironment, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    for name in NAMES:
        (source / name).mkdir(parents=True)
        (source / name / name).write_text(name)
        (source / name / name).chmod(0o640)
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / "link").symlink_to("plain/plain")
    (source / "empty").mkdir(mode=0o700)
    await sandbox.upload_dir(source, "/in/the/sandbox")
    shown = await sandbox.exec("cd /in/the/sandbox; readlink link; stat -c %a run.sh plain/plain")
    assert (shown.stdout or "").split() == ["plain/plain", "755", "640"]
    await sandbox.download_dir("/in/the/sandbox", tmp_path / "back")
    assert files_below(tmp_path / "back") == files_below(source)
    assert os.readlink(tmp_path / "back/link") == "plain/plain"
    assert (tmp_path / "back/empty").is_dir()
    assert stat.S_IMODE((tmp_path / "back/run.sh").stat().st_mode) == 0o755


async def test_a_tree_is_merged_into_a_directory_that_exists(
    sandbox: DockerEnvironment, tmp_path: Path
) -> None:
    await sandbox.exec("mkdir -m 711 /there; echo kept > /there/kept; echo old > /there/both")
    source = tmp_path / "source"
    source.mkdir()
    (source / "both").write_text("new")
    await sandbox.upload_dir(source, "/there")
    done = await sandbox.exec("cat /there/kept /there/both; stat -c ' %a' /there")
    assert done.stdout == "kept\nnew 711\n"


async def test_what_is_uploaded_belongs_to_root(sandbox: DockerEnvironment, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("x")
    with sandbox.with_default_user("nobody"):
        await sandbox.upload_file(tmp_path / "in", "/root/in")
    assert (await sandbox.exec("stat -c %u:%g /root/in", user="root")).stdout == "0:0\n"


@pytest.mark.parametrize("what", ["file", "dir"])
async def test_a_missing_source(sandbox: DockerEnvironment, tmp_path: Path, what: str) -> None:
    with pytest.raises(FileNotFoundError):
        await getattr(sandbox, f"upload_{what}")(tmp_path / "nothing", "/x")
    with pytest.raises(FileNotFoundError):
        await getattr(sandbox, f"download_{what}")("/no/such", tmp_path / "y")
    assert (await sandbox.exec("echo alive")).stdout == "alive\n"


async def test_unsafe_links_and_special_files_stay_in_the_sandbox(
    sandbox: DockerEnvironment, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await sandbox.exec(
        "mkdir -p /t/d && cd /t && echo data > file && ln -s file good && ln -s d/../../etc up "
        "&& ln -s /etc/passwd absolute && ln -s .. climb && ln -s ../file d/inner "
        "&& mkfifo pipe && mknod device c 1 3 && ln file hard "
        "&& python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'"
    )
    sandbox.logger.propagate = True
    await sandbox.download_dir("/t", tmp_path / "out")
    found = sorted(
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*")
    )
    assert found == ["d", "d/inner", "file", "good", "hard"]
    assert (tmp_path / "out/hard").read_text() == "data\n"
    assert os.readlink(tmp_path / "out/good") == "file"


async def test_names_that_are_no_text(sandbox: DockerEnvironment, tmp_path: Path) -> None:
    await sandbox.exec("mkdir /t; echo x > \"$(printf '/t/a\\377b')\"")
    await sandbox.download_dir("/t", tmp_path / "out")
    assert os.listdir(os.fsencode(tmp_path / "out")) == [b"a\xffb"]


async def test_unreadable_files_are_read_and_stay_readable(
    sandbox: DockerEnvironment, tmp_path: Path
) -> None:
    await sandbox.exec("mkdir /t; echo x > /t/f; chmod 000 /t/f; chmod 4755 /t/f; chmod 0 /t")
    await sandbox.download_dir("/t", tmp_path / "out")
    assert (tmp_path / "out/f").read_text() == "x\n"
    assert stat.S_IMODE((tmp_path / "out/f").stat().st_mode) & 0o7000 == 0


async def test_a_link_as_the_source_is_followed(sandbox: DockerEnvironment, tmp_path: Path) -> None:
    await sandbox.exec("mkdir /t; echo x > /t/f; ln -s /t /d; ln -s /t/f /l")
    await sandbox.download_dir("/d", tmp_path / "d")
    await sandbox.download_file("/l", tmp_path / "l")
    assert files_below(tmp_path / "d") == {"f": b"x\n"}
    assert (tmp_path / "l").read_text() == "x\n"


async def test_a_download_does_not_follow_what_lies_on_the_host(
    sandbox: DockerEnvironment, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("untouched")
    target = tmp_path / "target"
    target.mkdir()
    (target / "dir").symlink_to(outside)
    (target / "file").symlink_to(outside / "secret")
    await sandbox.exec("mkdir -p /a /b/dir; echo evil > /a/file; echo evil > /b/dir/secret")
    await sandbox.download_dir("/a", target)
    with pytest.raises(OSError, match=r"(?i)not a directory|symbolic links"):
        await sandbox.download_dir("/b", target)
    assert (outside / "secret").read_text() == "untouched"
    assert (target / "file").read_text() == "evil\n"
    assert not (target / "file").is_symlink()


@pytest.mark.parametrize(
    ("limit", "value"), [("MAX_DOWNLOAD_BYTES", 100_000), ("MAX_DOWNLOAD_ENTRIES", 50)]
)
async def test_a_download_over_the_budget_is_refused(
    sandbox: DockerEnvironment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
) -> None:
    monkeypatch.setattr(docker_module, limit, value)
    await sandbox.exec("mkdir /t; cd /t; for i in $(seq 100); do head -c 2000 /dev/zero > $i; done")
    with pytest.raises(ValueError, match=rf"{value} (bytes|entries)"):
        await sandbox.download_dir("/t", tmp_path / "out")
    assert sum(map(len, files_below(tmp_path / "out").values())) <= 100_000
    assert (await sandbox.exec("echo alive")).stdout == "alive\n"


async def test_a_sparse_file_over_the_budget_does_not_fill_the_host(
    sandbox: DockerEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker_module, "MAX_DOWNLOAD_BYTES", 300_000)
    monkeypatch.setattr(docker_module, "MAX_DOWNLOAD_ENTRIES", 100)
    await sandbox.exec("truncate -s 1T /huge")
    with pytest.raises(ValueError, match="bytes"):
        await sandbox.download_file("/huge", tmp_path / "out")
    assert (await sandbox.exec("echo alive")).stdout == "alive\n"


async def test_a_very_deep_tree_is_cut_off(sandbox: DockerEnvironment, tmp_path: Path) -> None:
    await sandbox.exec(
        "mkdir /t; python3 -c \"import os; os.chdir('/t')\n"
        "for i in range(1500): os.mkdir('d'); os.chdir('d')\n"
        "open('leaf', 'w')\"; echo x > /t/f"
    )
    await sandbox.download_dir("/t", tmp_path / "out")
    assert (tmp_path / "out/f").read_text() == "x\n"
    depth = sum(1 for _ in (tmp_path / "out").walk()) - 1
    assert 100 < depth < 200
    assert (await sandbox.exec("echo alive")).stdout == "alive\n"


async def test_files_that_vanish_or_grow_during_a_download_do_not_break_it(
    make: Make, tmp_path: Path
) -> None:
    sandbox = make(image=BASE_IMAGE)
    await sandbox.start(force_build=False)
    await sandbox.exec("mkdir /t; for i in $(seq 300); do head -c 90000 /dev/zero > /t/k$i; done")
    await sandbox.exec(
        "(while :; do for i in $(seq 50); do : > /t/z$i; done; rm -f /t/z*; "
        "echo more >> /t/grow; done) >/dev/null 2>&1 &"
    )
    for attempt in range(3):
        await sandbox.download_dir("/t", tmp_path / f"out{attempt}")
        assert (tmp_path / f"out{attempt}" / "k300").stat().st_size == 90000


async def test_special_files_on_the_host_are_not_uploaded(
    sandbox: DockerEnvironment, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(source / "s"))
        (source / "file").write_text("x")
        (source / "dangling").symlink_to("nowhere")
        await sandbox.upload_dir(source, "/t")
    assert (await sandbox.exec("ls /t | sort")).stdout == "dangling\nfile\n"
