"""An image's own program is the first process, and commands run beside it untouched by it."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker.errors
import pytest

from harbor_backend.errors import SandboxLostError
from harbor_backend.places.docker.engine import EngineError
from harbor_backend.places.docker.environment import DockerEnvironment
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.places.docker.conftest import Make

pytestmark = pytest.mark.docker


HEAD = f"""FROM {BASE_IMAGE}
RUN useradd -m -u 1500 dev && touch /seen && chmod 666 /seen
COPY --chmod=755 entry.sh /entry
ENTRYPOINT ["/entry"]
"""
WAIT = "while [ ! -s /seen ]; do sleep 0.05; done; cat /seen"
GO_ON = 'exec "$@"'

type MakeWith = Callable[..., DockerEnvironment]


@pytest.fixture
def make_with(make: Make, definition: Callable[..., Path]) -> MakeWith:
    """Makes a sandbox whose image has this script as its entry point."""

    def build(script: str, *lines: str, **options: Any) -> DockerEnvironment:
        dockerfile = "\n".join([HEAD, *lines, ""])
        directory = definition(dockerfile, entry__sh=f"#!/bin/bash\n{script}\n")
        return make(directory=directory, **options)

    return build


async def started(sandbox: DockerEnvironment) -> DockerEnvironment:
    await sandbox.start(force_build=False)
    return sandbox


async def output(sandbox: DockerEnvironment, command: str, **options: Any) -> str:
    done = await sandbox.exec(command, **options)
    assert done.return_code == 0, done
    return done.stdout or ""


async def test_it_is_the_first_process_as_its_own_user_and_with_the_tasks_environment(
    make_with: MakeWith, supervise: bool
) -> None:
    script = 'echo $$ $(id -u) $PWD $FROM_IMAGE $FROM_TASK "$@" > /seen; exec "$@"'
    sandbox = await started(
        make_with(
            script,
            "ENV FROM_IMAGE=i",
            "WORKDIR /work",
            "USER 1500",
            supervise=supervise,
            task={"env": {"FROM_TASK": "t"}},
        )
    )
    assert sandbox.supervised is supervise
    assert await output(sandbox, WAIT) == "1 1500 /work i t sh -c sleep infinity\n"


async def test_nothing_of_it_reaches_a_command(
    make: Make, make_with: MakeWith, supervise: bool
) -> None:
    script = (
        "export LEFT=yes PATH=/usr/bin:/bin:/nowhere HOME=/elsewhere\n"
        "cd /tmp; umask 077; ulimit -n 100 -f 7\n"
        "trap '' HUP TERM PIPE\n"
        'exec /usr/bin/setpriv --reuid=1500 --regid=1500 --clear-groups "$@"'
    )
    entry = await started(make_with(script, "WORKDIR /app", supervise=supervise))
    plain = await started(make(f"FROM {BASE_IMAGE}\nWORKDIR /app\n", supervise=supervise))
    look = (
        "id; pwd; umask; ulimit -a; env | grep -v -e ^HOSTNAME -e ^OSMOSIS_EXEC | sort; "
        "grep -E '^(Sig[BIC]|Cap|Seccomp:|NoNewPrivs|Groups)' /proc/self/status; "
        "cat /proc/self/oom_score_adj; ls /proc/self/fd"
    )
    assert await output(entry, look) == await output(plain, look)


async def test_one_that_ignores_its_arguments_serves_beside(make_with: MakeWith) -> None:
    sandbox = await started(make_with("echo up > /seen; exec sleep 1000"))
    assert await output(sandbox, WAIT) == "up\n"
    assert await output(sandbox, "cat /proc/1/comm") == "sleep\n"


async def test_a_slow_one_delays_no_command(make_with: MakeWith) -> None:
    began = time.monotonic()
    sandbox = await started(make_with('sleep 60; exec "$@"'))
    assert await output(sandbox, "echo here") == "here\n"
    assert time.monotonic() - began < 40


ENDS = {
    "at once": (
        "echo the reason >&2; exit 9",
        "exit code 9. Its first process printed: the reason",
    ),
    "in colours": ("printf '\\033[31mred\\033[0m\\n'; exit 3", "printed: red"),
    "without a word": ("exit 0", "exit code 0. Its first process printed: nothing"),
    "after a moment": ("sleep 0.2; echo late; exit 4", "exit code 4"),
}


@pytest.mark.parametrize("case", ENDS)
async def test_one_that_ends_ends_the_sandbox_with_its_own_words(
    make_with: MakeWith, supervise: bool, case: str
) -> None:
    script, said = ENDS[case]
    sandbox = make_with(script, supervise=supervise)
    with pytest.raises(SandboxLostError) as caught:
        await asyncio.wait_for(_used(sandbox), 30)
    text = str(caught.value)
    assert said in text
    assert all(c.isprintable() or c == "\n" for c in text)


async def _used(sandbox: DockerEnvironment) -> None:
    await sandbox.start(force_build=False)
    await sandbox.exec("sleep 20")


async def test_one_that_is_not_there_is_named(make: Make) -> None:
    sandbox = make(f'FROM {BASE_IMAGE}\nENTRYPOINT ["/no/such/program"]\n')
    with pytest.raises(EngineError, match="/no/such/program"):
        await sandbox.start(force_build=False)


async def test_one_that_ends_later_is_said_of_the_command_it_ends(make_with: MakeWith) -> None:
    script = "while [ ! -e /go ]; do sleep 0.05; done; echo bye; exit 5"
    sandbox = await started(make_with(script))
    with pytest.raises(SandboxLostError, match=r"sandbox ended.*exit code 5.*printed: bye"):
        await asyncio.wait_for(sandbox.exec("touch /go; sleep 100"), 30)
    with pytest.raises(SandboxLostError, match="exit code 5"):
        await sandbox.upload_file(__file__, "/x")


async def test_what_commands_leave_is_reaped_and_ended(make_with: MakeWith) -> None:
    sandbox = await started(make_with(GO_ON))
    await output(sandbox, "for i in 1 2 3; do setsid sh -c 'sleep 0.1' & done")
    await asyncio.sleep(0.5)
    states = await output(sandbox, "cat /proc/[0-9]*/stat | sed 's/.*) //' | cut -d' ' -f1")
    assert "Z" not in states.split()
    chain = "f() { [ $1 -gt 0 ] || return; echo . >>/trace; sleep 0.01; f $(($1-1)) & }; f 400"
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec(f"{chain}; sleep 60", timeout_sec=1)
    sizes = await output(sandbox, "stat -c %s /trace; sleep 0.3; stat -c %s /trace")
    assert len(set(sizes.split())) == 1


async def test_its_own_processes_outlive_a_command_that_is_ended(make_with: MakeWith) -> None:
    script = "(while :; do date +%s%N > /tmp/b; mv /tmp/b /beat; sleep 0.05; done) & " + GO_ON
    sandbox = await started(make_with(script))
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec("sleep 60", timeout_sec=1)
    beats = await output(sandbox, "cat /beat; sleep 0.5; cat /beat")
    assert len(set(beats.split())) == 2


async def test_root_inside_cannot_look_into_the_supervisor_beside(make_with: MakeWith) -> None:
    sandbox = await started(make_with(GO_ON))
    found = "pid=$(pgrep -x osmosis-supervi | head -1); [ $pid -gt 1 ]; "
    for command in (
        "head -c1 /proc/$pid/mem",
        "cat /proc/$pid/environ",
        "readlink /proc/$pid/fd/3",
    ):
        done = await sandbox.exec(found + command)
        assert (done.return_code != 0, done.stdout) == (True, ""), (command, done)


async def test_a_supervisor_that_is_held_still_is_not_waited_for_for_ever(
    make_with: MakeWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harbor_backend.places.docker.channel._SILENCE_SEC", 1.0)
    sandbox = await started(make_with(GO_ON))
    hold = "kill -STOP $(pgrep -x osmosis-supervi)"
    with pytest.raises(SandboxLostError, match="said nothing"):
        await asyncio.wait_for(sandbox.exec(hold, timeout_sec=1), 30)


async def test_a_sandbox_that_its_engine_left_stops_working(
    make_with: MakeWith, engine: Any
) -> None:
    sandbox = await started(make_with(GO_ON))
    await output(sandbox, "setsid sleep 1234 > /dev/null 2>&1 &")
    assert sandbox._exec is not None
    await sandbox._exec.close()  # as the kernel does when this process is killed
    container = engine.containers.get(sandbox.name)
    end = time.monotonic() + 20
    while _runs(container, "sleep 1234"):
        assert time.monotonic() < end
        await asyncio.sleep(0.1)


def _runs(container: Any, command: str) -> bool:
    """Whether this runs in it; nothing does once it has ended itself."""
    try:
        processes = container.top()["Processes"] or ()
    except docker.errors.APIError as exc:
        if exc.status_code == 409 or "ttrpc: closed" in str(exc):  # it has ended, or just ends
            return False
        raise
    return any(command in row[-1] for row in processes)
