"""A forked runner is like one that was started."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.rollout.container.files import ContainerInput, decode_result, encode
from osmosis_ai.rollout.container.supervisor import frames
from tests.rollout.container.supervisor.running import Host, running_supervisor

ARGUMENTS = ["agent", "--input", "-", "--result", "fd:3"]
STARTED = [sys.executable, "-I", "-m", "osmosis_ai.rollout.container.runner", *ARGUMENTS]
LOOKING = "tests.rollout.container.supervisor.looking"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A running supervisor's host."""
    monkeypatch.setenv("GIVEN", "by the image")
    with running_supervisor(tmp_path) as host:
        yield host


def send(host: Host, data: bytes, runner: list[str] | None, **request: Any) -> int:
    channel = host.execute(
        *STARTED, runner=runner, stdin=True, result_limit=1_000_000, env={"GIVEN": "by the host"},
        **request,
    )  # fmt: skip
    host.send(channel, frames.INPUT, data)
    host.send(channel, frames.INPUT_END)
    return channel


def phase(host: Host, runner: list[str] | None, prompt: str = "look") -> tuple[dict[str, Any], str]:
    """Run the workflow that looks around; returns what it saw and a random number."""
    task = ContainerInput(
        rollout_id="r-1", prompt=[{"role": "user", "content": prompt}], workflow=f"{LOOKING}:Looks"
    )
    answer, streams = host.finish(send(host, encode(task), runner))
    assert answer["code"] == 0, streams
    assert streams[frames.STDOUT] == b"printed\n"
    assert streams[frames.STDERR] == b"complained\n"
    result = decode_result(streams[frames.RESULT]).result()
    assert result.sample is not None, result
    _, facts, number = result.sample.messages
    return json.loads(facts["content"]), number["content"]


def test_a_fork_looks_like_a_start(host: Host, tmp_path: Path) -> None:
    started, _ = phase(host, None)
    forked, _ = phase(host, ARGUMENTS)
    assert started["given"] == "by the host"
    assert started["folder"] == str(tmp_path)
    assert not started["supervisor"]
    assert forked == started


def test_a_fork_sees_nothing_of_another(host: Host) -> None:
    first, one = phase(host, ARGUMENTS, "first")
    second, other = phase(host, ARGUMENTS, "second")
    assert (first["seen"], second["seen"]) == (["first"], ["second"])
    assert one != other


def test_a_fork_that_ends_its_process_leaves_the_supervisor(host: Host) -> None:
    task = ContainerInput(rollout_id="r-1", workflow=f"{LOOKING}:Exits")
    answer, streams = host.finish(send(host, encode(task), ARGUMENTS))
    assert answer["code"] == 7
    assert frames.RESULT not in streams
    assert phase(host, ARGUMENTS)[0]["seen"] == ["look"]


def test_what_escapes_the_runner_is_printed(host: Host) -> None:
    answer, streams = host.finish(send(host, b"no input", ARGUMENTS))
    assert answer["code"] == 1
    assert b"JSONDecodeError" in streams[frames.STDERR]


def test_wrong_arguments_end_as_they_do_elsewhere(host: Host) -> None:
    answer, streams = host.finish(send(host, b"", ["nothing"]))
    assert answer["code"] == 2
    assert b"invalid choice" in streams[frames.STDERR]


def test_a_deadline_ends_a_fork(host: Host) -> None:
    task = ContainerInput(rollout_id="r-1", workflow="time:sleep")
    channel = host.execute(*STARTED, runner=ARGUMENTS, stdin=True, result_limit=1000, timeout=1.0)
    host.send(channel, frames.INPUT, encode(task))  # and never an end of it
    answer, _ = host.finish(channel)
    assert (answer["code"], answer["timed_out"]) == (frames.TIMED_OUT, True)
