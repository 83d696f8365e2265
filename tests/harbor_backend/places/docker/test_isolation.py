"""What an agent with root in its sandbox cannot reach."""

import asyncio
import ipaddress
import socket
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import NetworkMode
from harbor.models.trial.config import ResourceMode

from harbor_backend.errors import SandboxLostError
from harbor_backend.places.docker.environment import DockerEnvironment
from harbor_backend.places.docker.executor import Command
from osmosis_ai.rollout.container.files import RUNTIME_PYTHON
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.places.docker.conftest import Make

pytestmark = pytest.mark.docker

# The image's own program is the first process: whoever is root inside can kill the supervisor.
WITH_ENTRY_POINT = f"""FROM {BASE_IMAGE}
ENTRYPOINT ["/bin/sh", "-c", "exec \\"$@\\"", "sh"]
"""


def host_address(engine: Any) -> str:
    """The host's address in the network that public sandboxes are in."""
    subnet = engine.networks.get("bridge").attrs["IPAM"]["Config"][0]["Subnet"]
    return str(next(ipaddress.ip_network(subnet).hosts()))


async def started(make: Make, *args: Any, **options: Any) -> DockerEnvironment:
    sandbox = make(*args, **options) if args else make(image=BASE_IMAGE, **options)
    await sandbox.start(force_build=False)
    return sandbox


async def test_without_a_network_there_is_only_loopback(sandbox: DockerEnvironment) -> None:
    done = await sandbox.exec("ls /sys/class/net; tail -n +2 /proc/net/route | wc -l")
    assert (done.stdout or "").split() == ["lo", "0"]


async def test_without_a_network_the_host_is_out_of_reach(
    sandbox: DockerEnvironment, engine: Any
) -> None:
    gateway = host_address(engine)
    with socket.create_server((gateway, 0)) as server:
        port = server.getsockname()[1]
        for address in (gateway, "127.0.0.1"):
            code = f"import socket; socket.create_connection(('{address}', {port}), 2)"
            assert (await sandbox.exec(f'python3 -c "{code}"')).return_code == 1


async def test_a_public_sandbox_has_a_route(make: Make, supervise: bool, engine: Any) -> None:
    sandbox = await started(make, supervise=supervise, network=NetworkMode.PUBLIC)
    gateway = host_address(engine)
    with socket.create_server((gateway, 0)) as server:
        code = f"import socket; socket.create_connection({server.getsockname()!r}, 5); print('ok')"
        done = await sandbox.exec(f'python3 -c "{code}"')
    assert done.stdout == "ok\n", done


async def test_an_allowlist_is_refused(make: Make) -> None:
    with pytest.raises(ValueError, match="allowlist"):
        make(image=BASE_IMAGE, network=NetworkMode.ALLOWLIST)


async def test_limits_reach_the_engine(make: Make, supervise: bool, engine: Any) -> None:
    sandbox = await started(make, supervise=supervise, task={"cpus": 0.5, "memory_mb": 300})
    config = engine.containers.get(sandbox.name).attrs["HostConfig"]
    assert config["NanoCpus"] == 500_000_000
    assert config["Memory"] == 300 * 1024 * 1024
    assert config["PidsLimit"] > 0
    assert config["Privileged"] is False
    assert not config["CapAdd"]


async def test_limits_can_be_left_out(make: Make, engine: Any) -> None:
    sandbox = await started(
        make,
        task={"cpus": 1, "memory_mb": 300},
        cpu_enforcement_policy=ResourceMode.IGNORE,
        memory_enforcement_policy=ResourceMode.IGNORE,
    )
    config = engine.containers.get(sandbox.name).attrs["HostConfig"]
    assert (config["NanoCpus"], config["Memory"]) == (0, 0)


async def test_more_memory_than_the_limit_ends_the_command_not_the_sandbox(make: Make) -> None:
    sandbox = await started(make, task={"memory_mb": 200})
    done = await sandbox.exec("python3 -c 'x = bytearray(600_000_000); print(len(x))'")
    assert done.return_code == 137
    assert (await sandbox.exec("echo alive")).stdout == "alive\n"


async def test_the_runtime_cannot_be_changed(make: Make) -> None:
    sandbox = await started(make)
    for command in (
        "echo x > /opt/osmosis/evil",
        f"echo x > {RUNTIME_PYTHON}",
        "rm -rf /opt/osmosis/python",
        "mount -o remount,rw /opt/osmosis",
        "umount /opt/osmosis",
    ):
        assert (await sandbox.exec(command)).return_code != 0, command
    assert (await sandbox.exec(f"{RUNTIME_PYTHON} -I -c 'import osmosis_ai'")).return_code == 0


async def test_the_channel_is_closed_to_others(make: Make) -> None:
    sandbox = await started(make)
    listed = (await sandbox.exec("ls -A /run/osmosis")).stdout or ""
    assert set(listed.split()) == {"hosts", "hostname", "resolv.conf"}
    assert (await sandbox.exec("touch /run/osmosis/x")).return_code != 0
    code = "import socket; socket.socket(socket.AF_UNIX).connect('/run/osmosis/control.sock')"
    refused = await sandbox.exec(f'python3 -c "{code}"')
    assert "FileNotFoundError" in (refused.stderr or "")


async def test_a_second_connection_before_the_socket_vanishes_is_refused(tmp_path: Path) -> None:
    from harbor_backend.places.docker.channel import Listener

    listener = Listener(tmp_path / "control.sock")
    await listener.open()
    _, first = await asyncio.open_unix_connection(tmp_path / "control.sock")
    reader, second = await asyncio.open_unix_connection(tmp_path / "control.sock")
    assert await asyncio.wait_for(reader.read(), 5) == b""
    second.close()
    first.close()
    with pytest.raises(SandboxLostError):
        await asyncio.wait_for((await listener.accepted()).ready(), 5)
    await listener.close()
    assert not (tmp_path / "control.sock").exists()


@pytest.mark.parametrize("signal", ["INT", "TERM", "HUP", "USR1", "STOP", "KILL"])
async def test_the_supervisor_as_first_process_takes_no_signals(make: Make, signal: str) -> None:
    sandbox = await started(make)
    await sandbox.exec(f"kill -{signal} 1; sleep 0.2", timeout_sec=10)
    assert (await sandbox.exec("echo alive", timeout_sec=10)).stdout == "alive\n"


async def test_a_killed_supervisor_loses_the_sandbox_and_hangs_nobody(make: Make) -> None:
    sandbox = await started(make, WITH_ENTRY_POINT)
    began = asyncio.get_running_loop().time()
    with pytest.raises(SandboxLostError, match="ended"):
        await sandbox.exec("kill -9 $(pgrep -x osmosis-supervi); sleep 100")
    with pytest.raises(SandboxLostError):
        await sandbox.exec("true")
    with pytest.raises(SandboxLostError):
        await sandbox.upload_file(__file__, "/x")
    assert asyncio.get_running_loop().time() - began < 15


async def test_root_inside_cannot_look_into_the_supervisor(make: Make) -> None:
    sandbox = await started(make)
    for command in (
        "head -c1 /proc/1/mem",
        "cat /proc/1/environ",
        "cat /proc/1/maps",
        "readlink /proc/1/fd/0",
        "cat /proc/1/fd/0",
    ):
        done = await sandbox.exec(command)
        assert (done.return_code != 0, done.stdout) == (True, ""), command


async def test_root_inside_cannot_look_into_a_sealed_process(make: Make) -> None:
    """The runner calls the same: what it was sent, and its way to answer, are out of reach."""
    sandbox = await started(make)
    code = (
        "from osmosis_ai.rollout.container.runner import _seal; _seal('fd:3'); "
        "open('/ready', 'w').close(); import sys, time; secret = sys.stdin.read(); time.sleep(3)"
    )
    running = asyncio.create_task(
        sandbox.run(Command([RUNTIME_PYTHON, "-I", "-c", code], stdin=b"label", result_limit=100))
    )
    await sandbox.exec("while [ ! -e /ready ]; do sleep 0.05; done", timeout_sec=20)
    spy = await sandbox.exec(
        "pid=$(pgrep -f '_sea[l]'); "
        "echo forged > /proc/$pid/fd/3; cat /proc/$pid/fd/0; cat /proc/$pid/mem; "
        "readlink /proc/$pid/fd/3; cat /proc/$pid/environ"
    )
    assert spy.stdout == "", spy
    assert "denied" in (spy.stderr or "").lower()
    assert (await running).result == b""


async def test_nothing_of_the_host_is_mounted(make: Make, supervise: bool, engine: Any) -> None:
    sandbox = await started(make, supervise=supervise)
    mounts = engine.containers.get(sandbox.name).attrs["Mounts"]
    places = {mount["Destination"]: mount for mount in mounts}
    own = {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}
    assert set(places) <= {"/opt/osmosis", "/run/osmosis", *own}
    assert {place for place, mount in places.items() if mount["RW"]} <= own
    for place in own & set(places):  # a copy that is this sandbox's alone
        assert Path(places[place]["Source"]).parent == Path(places["/run/osmosis"]["Source"])


async def test_a_flood_of_processes_is_limited(make: Make) -> None:
    sandbox = await started(make)
    code = (
        "import os, time\\nmade = 0\\ntry:\\n while made < 20000:\\n"
        "  if os.fork() == 0: time.sleep(100)\\n  made += 1\\nexcept OSError: print('refused')"
    )
    engine_limit = 300
    sandbox_id = sandbox.name
    proc = await asyncio.create_subprocess_exec(
        "docker", "update", "--pids-limit", str(engine_limit), sandbox_id, stdout=-3, stderr=-3
    )
    assert await proc.wait() == 0
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec(f'printf "{code}" > /f.py; python3 /f.py; sleep 60', timeout_sec=4)
    assert (await sandbox.exec("echo alive", timeout_sec=10)).stdout == "alive\n"
