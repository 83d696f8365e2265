"""What a supervisor does with commands."""

import json
import os
import select
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.rollout.container.supervisor import frames
from tests.rollout.container.supervisor.running import Host, running_supervisor


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A running supervisor's host."""
    with running_supervisor(tmp_path) as host:
        yield host


def test_a_command(host: Host, tmp_path: Path) -> None:
    script = 'cat; echo "$A $PWD" >&2; echo result >&3; exit 3'
    channel = host.execute(
        "sh", "-c", script, env={"A": "b"}, cwd="/", stdin=True, result_limit=100
    )
    host.send(channel, frames.INPUT, b"in")
    host.send(channel, frames.INPUT, b"put")
    host.send(channel, frames.INPUT_END)
    answer, streams = host.finish(channel)
    assert answer == {
        "code": 3, "timed_out": False, "dropped": 0, "result_dropped": 0,
    }  # fmt: skip
    assert streams == {
        frames.STDOUT: b"input", frames.STDERR: b"b /\n", frames.RESULT: b"result\n",
    }  # fmt: skip


def test_input_larger_than_a_pipe_and_output_beyond_the_limit(host: Host) -> None:
    channel = host.execute("cat", stdin=True, limit=1000)
    block = b"x" * 50_000
    for _ in range(20):
        host.send(channel, frames.INPUT, block)
    host.send(channel, frames.INPUT_END)
    answer, streams = host.finish(channel)
    assert answer["code"] == 0
    assert answer["dropped"] == 1_000_000 - 1000
    assert streams == {frames.STDOUT: b"x" * 1000}


def test_a_deadline_ends_the_whole_tree(host: Host, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = (
        "trap '' TERM; sleep 60 & echo $! >>pids; setsid sleep 60 & echo $! >>pids;"
        "(sleep 60 & echo $! >>pids); wait"
    )
    channel = host.execute("sh", "-c", script, timeout=0.5, cwd=str(tmp_path))
    answer, _ = host.finish(channel)
    assert (answer["code"], answer["timed_out"]) == (frames.TIMED_OUT, True)
    started = pids.read_text().split()
    assert len(started) == 3
    assert_gone(started)


def test_cancelling_a_command(host: Host, tmp_path: Path) -> None:
    channel = host.execute("sh", "-c", "sleep 60 & echo $! >pid; echo on; wait", cwd=str(tmp_path))
    assert host.receive() == (channel, frames.STDOUT, b"on\n")
    host.send(channel, frames.CANCEL)
    answer, _ = host.finish(channel)
    assert (answer["code"], answer["timed_out"]) == (137, False)
    assert_gone([(tmp_path / "pid").read_text().strip()])


def assert_gone(pids: list[str]) -> None:
    deadline = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_background_process_does_not_hold_up_the_answer(host: Host, tmp_path: Path) -> None:
    began = time.monotonic()
    channel = host.execute("sh", "-c", "sleep 60 & echo $! >pid; echo done", cwd=str(tmp_path))
    answer, streams = host.finish(channel)
    assert time.monotonic() - began < 10
    assert (answer["code"], streams) == (0, {frames.STDOUT: b"done\n"})
    pid = int((tmp_path / "pid").read_text())
    os.kill(pid, 9)  # it lives on, as under a container engine


@pytest.mark.parametrize(
    ("argv", "code", "text"),
    [
        (["/no/such/program"], 127, "No such file or directory"),
        (["/etc/passwd"], 126, "Permission denied"),
    ],
)
def test_a_command_that_does_not_start(host: Host, argv: list[str], code: int, text: str) -> None:
    answer, streams = host.finish(host.execute(*argv))
    assert answer["code"] == code
    assert text in streams[frames.STDERR].decode()


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"op": "dance"}, "unknown operation dance"),
        ({"op": "exec", "argv": ["true"], "user": "nobody-here", "limit": 1, "result_limit": 0},
         "unable to find user nobody-here"),
        ({"op": "get", "path": "/no/such/path", "max_bytes": 1, "max_entries": 1},
         "No such file or directory"),
        ({"op": "mkdir"}, "paths"),
        ({}, "op"),
    ],
)  # fmt: skip
def test_requests_that_are_refused(host: Host, request_: dict[str, Any], error: str) -> None:
    answer, _ = host.finish(host.open(**request_))
    assert error in answer["error"]
    assert host.finish(host.execute("true"))[0]["code"] == 0


def test_commands_side_by_side(host: Host, tmp_path: Path) -> None:
    fifo = str(tmp_path / "fifo")
    os.mkfifo(fifo)
    reader = host.execute("cat", fifo)
    writer = host.execute("sh", "-c", f"echo through >{fifo}")
    answers: dict[int, Any] = {}
    text = b""
    while len(answers) < 2:
        channel, kind, payload = host.receive()
        if kind == frames.DONE:
            answers[channel] = json.loads(payload)["code"]
        else:
            assert (channel, kind) == (reader, frames.STDOUT)
            text += payload
    assert answers == {reader: 0, writer: 0}
    assert text == b"through\n"


def test_files_go_in_and_come_out(host: Host, tmp_path: Path) -> None:
    target = tmp_path / "in" / "side"
    answer, _ = host.finish(host.open(op="mkdir", paths=[str(target)], mode=0o700))
    assert answer == {}
    channel = host.open(op="put", path=str(target / "a.bin"))
    data = os.urandom(200_000)
    host.send(channel, frames.ENTRY, b'{"name": "", "kind": "file", "mode": 420}')
    host.send(channel, frames.DATA, data)
    host.send(channel, frames.INPUT_END)
    assert host.finish(channel)[0] == {}
    assert (target / "a.bin").read_bytes() == data
    limits = {"max_bytes": 10**6, "max_entries": 10}
    answer, streams = host.finish(host.open(op="get", path=str(target), **limits))
    assert answer == {"skipped": 0}
    assert streams[frames.DATA] == data
    entries = [payload for kind, payload in frames.each(frames.MANY, streams[frames.MANY])]
    assert b'"name": "a.bin"' in entries[1]


def test_it_says_nothing_unasked(host: Host) -> None:
    assert select.select([host.connection], [], [], 0.2)[0] == []
