"""What a command in a sandbox gets and gives back."""

import asyncio
import time

import pytest

from harbor_backend.errors import SandboxLostError
from harbor_backend.places.docker import environment as docker_module
from harbor_backend.places.docker.engine import EngineError
from harbor_backend.places.docker.environment import DockerEnvironment
from harbor_backend.places.docker.executor import Command
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.places.docker.conftest import Make

pytestmark = pytest.mark.docker

WITH_USERS = f"""FROM {BASE_IMAGE}
RUN groupadd -g 2000 team && groupadd -g 2001 crew \\
    && useradd -u 1500 -m -g team -G crew worker
"""


@pytest.mark.parametrize("code", [0, 1, 3, 255])
async def test_return_code(sandbox: DockerEnvironment, code: int) -> None:
    assert (await sandbox.exec(f"exit {code}")).return_code == code


async def test_a_signal_is_128_plus_its_number(sandbox: DockerEnvironment) -> None:
    assert (await sandbox.exec("kill -9 $$")).return_code == 137


async def test_streams_are_kept_apart(sandbox: DockerEnvironment) -> None:
    done = await sandbox.exec("echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


async def test_shell_is_bash_where_there_is_one(sandbox: DockerEnvironment) -> None:
    done = await sandbox.exec("[[ a == a ]] && echo ${BASH_VERSION:+bash}")
    assert done.stdout == "bash\n"


async def test_a_command_that_does_not_exist(sandbox: DockerEnvironment) -> None:
    done = await sandbox.exec("no-such-command")
    assert done.return_code == 127
    assert "no-such-command" in (done.stderr or "")


async def test_env_and_cwd(sandbox: DockerEnvironment) -> None:
    done = await sandbox.exec('pwd; echo "$A|$PATH"', cwd="/usr/lib", env={"A": "x y\n$(z) 'q'"})
    lines = (done.stdout or "").splitlines()
    assert lines[0] == "/usr/lib"
    assert lines[1:3] == ["x y", "$(z) 'q'|" + lines[2].partition("|")[2]]
    assert "/usr/bin" in lines[2]


async def test_cwd_that_does_not_exist(sandbox: DockerEnvironment) -> None:
    done = await sandbox.exec("echo ran", cwd="/no/such/dir")
    assert done.return_code != 0
    assert "ran" not in (done.stdout or "").splitlines()
    assert "/no/such/dir" in f"{done.stdout}{done.stderr}"


async def test_stdin_is_empty(sandbox: DockerEnvironment) -> None:
    done = await sandbox.exec("cat; echo end", timeout_sec=20)
    assert done.stdout == "end\n"


async def test_persistent_env_and_its_precedence(make: Make, supervise: bool) -> None:
    sandbox = make(
        image=BASE_IMAGE,
        supervise=supervise,
        task={"env": {"FROM_TASK": "task", "BOTH": "task"}},
        persistent_env={"BOTH": "trial", "CALL": "trial"},
    )
    await sandbox.start(force_build=False)
    with sandbox.scoped_exec_env({"SCOPED": "yes"}):
        done = await sandbox.exec("echo $FROM_TASK $BOTH $CALL $SCOPED", env={"CALL": "call"})
    assert done.stdout == "task trial call yes\n"


async def test_workdir_of_the_task_and_of_the_image(make: Make, supervise: bool) -> None:
    image = make(f"FROM {BASE_IMAGE}\nWORKDIR /from/image\n", supervise=supervise)
    task = make(
        f"FROM {BASE_IMAGE}\nWORKDIR /from/image\n", supervise=supervise, task={"workdir": "/opt"}
    )
    for sandbox, expected in ((image, "/from/image"), (task, "/opt")):
        await sandbox.start(force_build=False)
        assert (await sandbox.exec("pwd")).stdout == f"{expected}\n"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("worker", "1500 2000 2000,2001 /home/worker"),
        (1500, "1500 2000 2000,2001 /home/worker"),
        ("1500", "1500 2000 2000,2001 /home/worker"),
        ("worker:crew", "1500 2001 2001 /home/worker"),
        ("worker:0", "1500 0 0 /home/worker"),
        ("1500:2001", "1500 2001 2001 /home/worker"),
        ("4321", "4321 0 0 /"),
        ("4321:8765", "4321 8765 8765 /"),
        ("root", "0 0 0 /root"),
        (0, "0 0 0 /root"),
        (":2001", "0 2001 2001 /root"),
        (None, "0 0 0 /root"),
    ],
)
async def test_user(make: Make, supervise: bool, user: str | int | None, expected: str) -> None:
    sandbox = make(WITH_USERS, supervise=supervise)
    await sandbox.start(force_build=False)
    done = await sandbox.exec(
        "echo $(id -u) $(id -g) $(id -G | tr ' ' '\\n' | sort -n | paste -sd,) $HOME", user=user
    )
    assert done.stdout == f"{expected}\n"


@pytest.mark.parametrize("user", ["nobody-here", "root:no-such-group"])
async def test_an_unknown_user_is_refused(sandbox: DockerEnvironment, user: str) -> None:
    with pytest.raises((ValueError, EngineError), match=r"user|group"):
        await sandbox.exec("id", user=user)
    assert (await sandbox.exec("echo alive")).stdout == "alive\n"


async def test_user_of_the_image_and_of_the_scope(make: Make, supervise: bool) -> None:
    sandbox = make(f"{WITH_USERS}USER worker\n", supervise=supervise)
    await sandbox.start(force_build=False)
    assert (await sandbox.exec("id -un; echo $HOME")).stdout == "worker\n/home/worker\n"
    with sandbox.with_default_user("root"):
        assert (await sandbox.exec("id -un")).stdout == "root\n"
    assert (await sandbox.exec("id -un", user="root")).stdout == "root\n"
    assert (await sandbox.exec("echo new > ~/file && cat ~/file")).stdout == "new\n"


async def test_an_image_with_nothing_but_a_shell(
    make: Make, supervise: bool, shell_only: str
) -> None:
    sandbox = make(image=shell_only, supervise=supervise)
    await sandbox.start(force_build=False)
    done = await sandbox.exec("echo $0; echo err >&2; exit 7", env={"A": "1"})
    assert (done.return_code, done.stdout, done.stderr) == (7, "sh\n", "err\n")
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec("sleep 60", timeout_sec=1)


async def test_output_that_is_no_text(sandbox: DockerEnvironment) -> None:
    done = await sandbox.exec(r"printf 'a\377\200b\0c'")
    assert done.stdout == "a\ufffd\ufffdb\0c"


async def test_output_beyond_the_limit_is_dropped_and_counted(
    sandbox: DockerEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        docker_module,
        "Command",
        lambda *args, **kwargs: Command(*args, **{"output_limit": 1000, **kwargs}),
    )
    done = await sandbox.exec("head -c 1500 /dev/zero | tr '\\0' x; echo err >&2")
    assert done.stdout == "x" * 1000
    assert (done.stderr or "").startswith("err\n")
    assert "500 bytes of output" in (done.stderr or "")


async def test_huge_output_stays_bounded(sandbox: DockerEnvironment) -> None:
    done = await sandbox.exec("head -c 52428800 /dev/zero | tr '\\0' x", timeout_sec=120)
    assert done.return_code == 0
    assert len(done.stdout or "") == 16 * 1024 * 1024
    assert f"{52428800 - 16 * 1024 * 1024} bytes of output" in (done.stderr or "")


async def test_output_is_streamed_while_the_command_runs(sandbox: DockerEnvironment) -> None:
    seen: list[tuple[str, str]] = []
    first = asyncio.Event()

    async def on_output(text: str, stream: str) -> None:
        seen.append((text, stream))
        first.set()

    async def run() -> None:
        with sandbox.scoped_output_callback(on_output):
            await sandbox.exec("echo one; while [ ! -e /go ]; do sleep 0.05; done; echo two >&2")

    async with asyncio.TaskGroup() as group:
        running = group.create_task(run())
        await asyncio.wait_for(first.wait(), 20)
        assert not running.done()
        await sandbox.exec("touch /go")
    assert seen == [("one\n", "stdout"), ("two\n", "stderr")]


async def test_commands_run_side_by_side(sandbox: DockerEnvironment) -> None:
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(
            sandbox.exec("while [ ! -e /other ]; do sleep 0.05; done; echo a", timeout_sec=20)
        )
        other = group.create_task(sandbox.exec("touch /other; echo b"))
    assert (waiting.result().stdout, other.result().stdout) == ("a\n", "b\n")


async def test_a_background_process_neither_delays_nor_dies(sandbox: DockerEnvironment) -> None:
    began = time.monotonic()
    done = await sandbox.exec(
        "(while :; do date +%s%N > /beat.new; mv /beat.new /beat; sleep 0.1; done) & echo started"
    )
    assert done.stdout == "started\n"
    assert time.monotonic() - began < 5
    await sandbox.exec("true", timeout_sec=20)
    beats = (await sandbox.exec("cat /beat; sleep 0.5; cat /beat")).stdout or ""
    assert len(set(beats.split())) == 2


async def test_much_input_to_a_command_that_answers_at_once(make: Make) -> None:
    sandbox = make(image=BASE_IMAGE)
    await sandbox.start(force_build=False)
    data = bytes(range(256)) * 4096 * 24
    done = await asyncio.wait_for(
        sandbox.run(Command(["cat"], stdin=data, output_limit=len(data))), 60
    )
    assert done.stdout == data


async def test_input_that_nobody_reads(make: Make) -> None:
    sandbox = make(image=BASE_IMAGE)
    await sandbox.start(force_build=False)
    done = await asyncio.wait_for(
        sandbox.run(Command(["sh", "-c", "exec <&-; echo done"], stdin=b"x" * 20_000_000)), 60
    )
    assert (done.code, done.stdout) == (0, b"done\n")


async def test_nothing_runs_before_the_start_or_after_the_stop(make: Make, supervise: bool) -> None:
    sandbox = make(image=BASE_IMAGE, supervise=supervise)
    with pytest.raises(RuntimeError, match="not running"):
        await sandbox.exec("true")
    await sandbox.start(force_build=False)
    await sandbox.stop(delete=True)
    await sandbox.stop(delete=True)
    with pytest.raises(RuntimeError, match="not running"):
        await sandbox.exec("true")


async def test_a_container_that_vanishes_ends_its_commands(
    sandbox: DockerEnvironment, engine: object
) -> None:
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_expect_lost(sandbox))
        await asyncio.sleep(1)
        await asyncio.to_thread(engine.containers.get(sandbox.name).remove, force=True)  # type: ignore[attr-defined]
        await asyncio.wait_for(running, 30)


async def _expect_lost(sandbox: DockerEnvironment) -> None:
    with pytest.raises((SandboxLostError, EngineError)):
        await sandbox.exec("sleep 300")
