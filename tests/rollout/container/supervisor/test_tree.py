"""Finding and ending process trees, with real processes."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from osmosis_ai.rollout.container.supervisor.jobs import PR_SET_CHILD_SUBREAPER, exit_code
from osmosis_ai.rollout.container.supervisor.tree import descendants, end_tree


@contextmanager
def shell(script: str) -> Iterator[subprocess.Popen[str]]:
    """Run a script that says "ready" when its tree stands."""
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            end_tree(process.pid)


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def test_children_come_before_grandchildren() -> None:
    script = "sleep 60 & sh -c 'sleep 60 & echo ready; wait' & wait"
    with shell(script) as process:
        tree = descendants(process.pid)
        assert len(tree) == 3
        parents = [parent_of(pid) for pid in tree]
        assert parents[:2] == [process.pid, process.pid]
        assert parents[2] in tree[:2]
        assert set(tree) <= set(descendants(os.getpid()))


def parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])


def test_a_process_without_children_has_no_descendants() -> None:
    with shell("echo ready; exec sleep 60") as process:
        assert descendants(process.pid) == []
    assert descendants(process.pid) == []


def test_the_dead_do_not_count() -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it stays, as a zombie
        assert child.pid not in descendants(os.getpid())


@pytest.mark.parametrize("name", ["a) S 1 (", "(((", ") ) )"])
def test_a_name_cannot_hide_a_process(name: str) -> None:
    code = (
        "import ctypes, time\n"
        f"ctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0)\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    with shell(f'"{sys.executable}" -c "{code}"; true') as process:
        assert len(descendants(process.pid)) == 1


def test_end_tree_ends_what_ignores_signals() -> None:
    script = (
        "trap '' TERM INT HUP; sh -c \"trap '' TERM; echo ready; sleep 60; sleep 60\"; sleep 60"
    )
    with shell(script) as process:
        tree = descendants(process.pid)
        assert tree
        end_tree(process.pid)
        wait_until_gone([*tree, process.pid])
    # The shell may have seen its child killed before it was killed itself.
    assert process.returncode in {-signal.SIGKILL, 128 + signal.SIGKILL}


@contextmanager
def guard(script: str) -> Iterator[tuple[int, str]]:
    """A process that adopts the orphans of its tree, as the supervisor's guards do.

    Yields its pid and the first line that the script printed.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            os.dup2(write, 1)
            os.posix_spawn("/bin/sh", ["sh", "-c", script], os.environ)
            while True:
                os.wait()
        except ChildProcessError:
            signal.pause()
        finally:
            os._exit(1)
    os.close(write)
    try:
        with open(read) as output:
            yield pid, output.readline().strip()
    finally:
        end_tree(pid)
        _, status = os.waitpid(pid, 0)
    assert exit_code(status) == 128 + signal.SIGKILL


def test_a_guard_finds_what_detached_itself() -> None:
    with guard("setsid sleep 60 & echo $!") as (pid, orphan):
        deadline = time.monotonic() + 10
        while descendants(pid) != [int(orphan)]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    wait_until_gone([int(orphan)])


def test_end_tree_keeps_up_with_what_forks_on(tmp_path: Path) -> None:
    """A loop that detaches one process after the other, while it is being ended."""
    trace = tmp_path / "trace"
    link = f"echo . >>'{trace}'; sleep 0.05; echo . >>'{trace}'"
    script = f'while :; do (setsid sh -c "{link}" &); sleep 0.005; done & echo started'
    with guard(script):
        deadline = time.monotonic() + 10
        while not trace.exists() or trace.stat().st_size < 20:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    size = trace.stat().st_size
    time.sleep(0.1)
    assert trace.stat().st_size == size


def test_end_tree_keeps_up_with_a_chain_of_forks(tmp_path: Path) -> None:
    """Each process of the chain lives for a moment only, so one look may see none of them."""
    trace = tmp_path / "trace"
    trace.touch()
    link = f"f() {{ [ $1 -gt 0 ] || return; echo . >>'{trace}'; sleep 0.01; f $(($1-1)) & }}"
    with guard(f"{link}; f 60 & echo started"):
        deadline = time.monotonic() + 10
        while trace.stat().st_size < 6:
            assert time.monotonic() < deadline
            time.sleep(0.005)
    size = trace.stat().st_size
    time.sleep(0.2)
    assert trace.stat().st_size == size


def test_ending_what_is_gone_is_no_error() -> None:
    with subprocess.Popen(["true"]) as child:
        pass
    end_tree(child.pid)


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_exit_codes_are_a_shells(script: str, code: int) -> None:
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", script], {})
    assert exit_code(os.waitpid(pid, 0)[1]) == code
