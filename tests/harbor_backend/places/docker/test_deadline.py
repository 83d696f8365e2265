"""What ends with a command: all that it started, when time is up or nobody waits any more."""

import asyncio
import time

import pytest

from harbor_backend.places.docker.environment import DockerEnvironment
from harbor_backend.places.docker.executor import Command
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.places.docker.conftest import Make

pytestmark = pytest.mark.docker

# Each leaves a process that ticks in /tick for as long as it lives.
TICK = "while :; do date +%s%N > /tick.new; mv /tick.new /tick; sleep 0.05; done"
WAYS = {
    "plain": TICK,
    "child": f"sh -c '{TICK}'; true",
    "background": f"({TICK}) & wait",
    "setsid": f"setsid sh -c '{TICK}' & sleep 100",
    "nohup": f"nohup sh -c '{TICK}' >/dev/null 2>&1 & sleep 100",
    "double-fork": f"(setsid sh -c '({TICK}) &' &) ; sleep 100",
    "ignores signals": f"trap '' TERM INT HUP QUIT; {TICK}",
    "cleared environment": f"env -i PATH=$PATH sh -c '{TICK}'",
    "cleared, no parents": f"(setsid env -i PATH=$PATH sh -c '({TICK}) &' &); sleep 100",
    "closed output": f"exec >&- 2>&-; {TICK}",
}
# A parent that replaces itself faster than one look at /proc.
STORM = """
import os, time
open('/tick', 'w').write('x')
end = time.time() + 20
while time.time() < end:
    if os.fork():
        os._exit(0)
    os.setsid()
    open('/tick', 'w').write(str(time.time_ns()))
"""


async def assert_stopped(sandbox: DockerEnvironment) -> None:
    """Nothing ticks any more, and nothing keeps the sandbox from taking commands."""
    done = await sandbox.exec("cat /tick; echo /; sleep 0.4; cat /tick; ps -ef >&2 || true")
    before, _, after = (done.stdout or "").partition("/\n")
    assert before == after, done


@pytest.mark.parametrize("way", WAYS)
async def test_deadline_ends_the_whole_tree(sandbox: DockerEnvironment, way: str) -> None:
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
        await sandbox.exec(WAYS[way], timeout_sec=1)
    assert time.monotonic() - began < 8
    await assert_stopped(sandbox)


@pytest.mark.parametrize("way", WAYS)
async def test_cancellation_ends_the_whole_tree(sandbox: DockerEnvironment, way: str) -> None:
    running = asyncio.create_task(sandbox.exec(WAYS[way]))
    await sandbox.exec("while [ ! -s /tick ]; do sleep 0.05; done", timeout_sec=20)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await assert_stopped(sandbox)


@pytest.mark.parametrize("ending", ["deadline", "cancellation"])
async def test_a_command_that_spares_processes_ends_alone(
    sandbox: DockerEnvironment, ending: str
) -> None:
    """Where it can be told from what it started, which a supervisor can."""
    command = Command(
        ["sh", "-c", f"({TICK}) >/dev/null 2>&1 & echo $$ >/pid; sleep 100; true"],
        spares_processes=True,
        timeout_sec=2 if ending == "deadline" else None,
    )
    running = asyncio.create_task(sandbox._running.run(command))
    await sandbox.exec("while [ ! -s /tick ]; do sleep 0.05; done", timeout_sec=20)
    if ending == "cancellation":
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    else:
        assert (await running).timed_out
    if ending == "deadline" and not sandbox.supervised:
        await assert_stopped(sandbox)  # without a supervisor, its deadline ends the tree
        return
    look = "cat /tick; echo /; sleep 0.4; cat /tick; echo /; kill -0 $(cat /pid) && echo lives"
    before, after, alive = ((await sandbox.exec(look)).stdout or "").split("/\n", 2)
    assert before != after
    assert ("lives" in alive) is not sandbox.supervised


async def test_deadline_ends_a_storm_of_forks(make: Make) -> None:
    sandbox = make(image=BASE_IMAGE)
    await sandbox.start(force_build=False)
    script = f'python3 -c "{STORM}" & sleep 100'
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec(script, timeout_sec=2)
    await assert_stopped(sandbox)


async def test_deadline_ends_processes_of_other_users(
    sandbox: DockerEnvironment,
) -> None:
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec(
            f"chmod 777 /; setpriv --reuid 1234 --clear-groups sh -c '{TICK}' & sleep 100",
            timeout_sec=2,
        )
    await assert_stopped(sandbox)


async def test_what_other_commands_left_running_survives_a_deadline(
    sandbox: DockerEnvironment,
) -> None:
    await sandbox.exec(f"({TICK}) >/dev/null 2>&1 &")
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec("sleep 100", timeout_sec=1)
    done = await sandbox.exec("cat /tick; sleep 0.4; echo; cat /tick")
    assert len(set((done.stdout or "").split())) == 2


async def test_output_before_the_deadline_was_streamed(sandbox: DockerEnvironment) -> None:
    seen: list[str] = []

    async def on_output(text: str, stream: str) -> None:
        seen.append(text)

    with sandbox.scoped_output_callback(on_output), pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec("echo early; sleep 100", timeout_sec=1)
    assert seen == ["early\n"]


async def test_a_deadline_in_time_changes_nothing(sandbox: DockerEnvironment) -> None:
    done = await sandbox.exec("sleep 0.2; echo x; exit 124", timeout_sec=30)
    assert (done.return_code, done.stdout) == (124, "x\n")


async def test_a_slow_reader_does_not_hold_up_a_deadline(make: Make) -> None:
    sandbox = make(image=BASE_IMAGE)
    await sandbox.start(force_build=False)

    async def on_output(text: str, stream: str) -> None:
        await asyncio.sleep(0.01)

    began = time.monotonic()
    with sandbox.scoped_output_callback(on_output), pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec("yes", timeout_sec=2)
    assert time.monotonic() - began < 12
