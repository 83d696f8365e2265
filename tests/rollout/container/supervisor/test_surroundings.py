"""A command gets what its supervisor was given, and nothing of the supervisor's own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from osmosis_ai.rollout.container.supervisor import frames
from osmosis_ai.rollout.container.supervisor.main import NAMES_HOME, TITLE
from tests.rollout.container.supervisor.running import Host, running_supervisor

# Without a locale, an interpreter sets one for itself and those that it starts.
BARE = {"PATH": os.defpath, "A": "x=y\nz", "HOME": "/of-the-engine"}
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


def output(host: Host, *argv: str, **request: object) -> str:
    answer, streams = host.finish(host.execute(*argv, **request))
    assert answer["code"] == 0, streams
    return streams[frames.STDOUT].decode()


def test_the_environment_is_the_one_that_was_given(tmp_path: Path) -> None:
    with running_supervisor(tmp_path, env=BARE) as host:
        seen = output(host, "env", "-0").split("\0")
        assert sorted(filter(None, seen)) == sorted(f"{k}={v}" for k, v in BARE.items())
        assert "A=other\0" in output(host, "env", "-0", env={"A": "other"})


def test_bytes_that_are_no_text_pass_through(tmp_path: Path) -> None:
    odd = os.fsdecode(b"\xff\xfe")
    with running_supervisor(tmp_path, env={**BARE, "ODD": odd}) as host:
        answer, streams = host.finish(host.execute("env"))
        assert answer["code"] == 0
        assert b"ODD=\xff\xfe\n" in streams[frames.STDOUT]


@AS_ROOT
@pytest.mark.parametrize(
    ("facts", "env", "home"),
    [
        ((), {}, "/root"),
        ((NAMES_HOME,), {}, "/of-the-engine"),
        ((), {"HOME": "/asked"}, "/asked"),
        ((NAMES_HOME,), {"HOME": "/asked"}, "/asked"),
    ],
)
def test_home(tmp_path: Path, facts: tuple[str, ...], env: dict[str, str], home: str) -> None:
    with running_supervisor(tmp_path, *facts, env=BARE) as host:
        assert output(host, "sh", "-c", "echo $HOME", user="root", env=env) == f"{home}\n"


def test_signals_are_as_the_engine_gives_them(tmp_path: Path) -> None:
    plain = subprocess.run(
        ["/bin/sh", "-c", "grep ^Sig /proc/self/status"], capture_output=True, text=True, check=True
    ).stdout
    with running_supervisor(tmp_path, env=BARE) as host:
        seen = output(host, "/bin/sh", "-c", "grep ^Sig /proc/self/status")
    assert wanted(seen) == wanted(plain)


def wanted(status: str) -> dict[str, str]:
    fields = dict(line.split(":\t") for line in status.splitlines())
    return {name: fields[name] for name in ("SigBlk", "SigIgn", "SigCgt")}


def test_a_signal_that_is_ignored_there_stays_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with running_supervisor(tmp_path, env=BARE) as host:
            seen = output(host, "cat", "/proc/self/status")
        here = Path("/proc/self/status").read_text()
    finally:
        signal.signal(signal.SIGHUP, before)
    # An interpreter ignores two for itself; whoever started the tests may ignore others.
    own = sum(1 << (number - 1) for number in (signal.SIGPIPE, signal.SIGXFSZ))
    assert ignored(seen) == ignored(here) & ~own
    assert ignored(seen) & 1 << (signal.SIGHUP - 1)


def ignored(status: str) -> int:
    (line,) = (line for line in status.splitlines() if line.startswith("SigIgn"))
    return int(line.split()[1], 16)


def test_a_command_begins_in_the_directory_even_if_another_took_its_place(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with running_supervisor(work, env=BARE) as host:
        work.rename(tmp_path / "old")
        work.mkdir()
        (work / "new").touch()
        assert output(host, "ls") == "new\n"
        answer, streams = host.finish(host.execute("true", cwd=str(tmp_path / "no")))
        assert answer["code"] == 127
        assert b"No such file" in streams[frames.STDERR]


@AS_ROOT
def test_a_user_may_be_in_a_directory_that_it_may_not_enter(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with running_supervisor(tmp_path, env=BARE) as host:
        pwd = output(host, "sh", "-c", "echo $(id -u)", user="4321", cwd=str(closed))
    assert pwd == "4321\n"


def test_what_ends_every_python_does_not_end_it(tmp_path: Path) -> None:
    """``pkill`` looks at names and command lines: those of supervisor and guards are their own."""
    look = (
        "import os; pid = os.getppid()\n"
        "while True:\n"
        "    line = open(f'/proc/{pid}/cmdline', 'rb').read().rstrip(b'\\0').decode()\n"
        "    print(open(f'/proc/{pid}/comm').read().strip(), line, sep='|')\n"
        "    stat = open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()\n"
        f"    if line != {TITLE!r}: break\n"
        "    pid = int(stat[1])\n"
    )
    with running_supervisor(tmp_path, env=BARE) as host:
        lines = output(host, sys.executable, "-c", look).splitlines()
    assert lines[:2] == [f"{TITLE[:15]}|{TITLE}"] * 2


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "ALRM", "TERM", "USR1", "USR2"])
def test_it_outlives_what_a_process_beside_it_sends(tmp_path: Path, name: str) -> None:
    signals = (
        "import os, signal\n"
        f"guard = os.getppid(); number = signal.SIG{name}\n"
        "parent = int(open(f'/proc/{guard}/stat').read().rpartition(')')[2].split()[1])\n"
        "os.kill(parent, number); os.kill(guard, number); print('sent')"
    )
    number = getattr(signal, f"SIG{name}")
    before = signal.signal(number, signal.SIG_DFL)  # a shell's background job ignores some
    try:
        with running_supervisor(tmp_path, env=BARE) as host:
            assert output(host, sys.executable, "-c", signals) == "sent\n"
            trap = f"trap - {name}; kill -{name} $$; echo unharmed"
            answer, streams = host.finish(host.execute("sh", "-c", trap))
            assert answer["code"] == 128 + number
            assert frames.STDOUT not in streams
    finally:
        signal.signal(number, before)


def test_the_limits_and_the_mask_of_files_are_those_of_the_supervisor(tmp_path: Path) -> None:
    with running_supervisor(tmp_path, env=BARE) as host:
        seen = output(host, "sh", "-c", "ulimit -a; umask; ls /proc/self/fd")
    plain = subprocess.run(
        ["sh", "-c", "ulimit -a"], capture_output=True, text=True, check=True
    ).stdout
    assert seen.startswith(plain)
    assert seen.removeprefix(plain).split() == ["0022", "0", "1", "2", "3"]  # 3 is that of ls
