"""Sandboxes borrow their network namespace, and see nothing of who had it."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import NetworkMode

from harbor_backend.errors import SandboxStartError
from harbor_backend.places import labels
from harbor_backend.places.docker import namespaces, networks
from harbor_backend.places.docker.engine import shared_engine
from harbor_backend.places.docker.environment import DockerEnvironment
from harbor_backend.places.docker.networks import PUBLIC_NETWORK, ensure_public_network
from harbor_backend.places.instance import instance_id
from harbor_backend.program.runtime import Runtime
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.places.docker.conftest import Make

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[4]
LISTEN = (
    "import socket, time; s = socket.create_server(('127.0.0.1', 18417)); "
    "print('listens', flush=True); time.sleep(600)"
)
CONNECT = """
import socket
server = socket.create_server(("127.0.0.1", 18417))
for _ in range(8):
    client = socket.create_connection(("127.0.0.1", 18417))
    served, _ = server.accept()
    served.close()
    client.close()
"""
BIND = """
import socket
with socket.socket() as server:
    server.bind(("127.0.0.1", 18417))
    server.listen()
"""
DIES_WITH_A_NAMESPACE = """
import asyncio, os, pathlib, sys
from harbor_backend.places.docker.engine import shared_engine
from harbor_backend.places.docker.namespaces import borrow_namespace
async def main():
    held = await borrow_namespace(shared_engine(), 'none', pathlib.Path(sys.argv[1]))
    print(held.container, flush=True)
    sys.stdin.read()
asyncio.run(main())
"""


async def started(make: Make, **options: Any) -> DockerEnvironment:
    sandbox = make(image=BASE_IMAGE, **options)
    await sandbox.start(force_build=False)
    return sandbox


async def output(sandbox: DockerEnvironment, command: str) -> str:
    done = await sandbox.exec(command)
    assert done.return_code == 0, done
    return (done.stdout or "").strip()


async def namespace(sandbox: DockerEnvironment) -> str:
    return await output(sandbox, "readlink /proc/self/ns/net")


async def test_sandboxes_that_live_together_share_no_namespace(make: Make) -> None:
    sandboxes = [await started(make) for _ in range(3)]
    assert len({await namespace(sandbox) for sandbox in sandboxes}) == 3


async def test_the_next_sandbox_gets_the_namespace_of_an_ended_one(make: Make) -> None:
    sandboxes = [await started(make) for _ in range(2)]
    seen = {await namespace(sandbox) for sandbox in sandboxes}
    await asyncio.gather(*(sandbox.stop(delete=True) for sandbox in sandboxes))
    again = [await started(make) for _ in range(2)]
    assert {await namespace(sandbox) for sandbox in again} == seen


async def test_nothing_of_an_ended_sandbox_is_seen_in_its_namespace(make: Make) -> None:
    first = await started(make)
    before = await output(first, "cat /etc/hosts /etc/hostname /etc/resolv.conf")
    await first.exec(f'(setsid python3 -c "{LISTEN}" > /tmp/log 2>&1 &)')
    await output(first, "while ! grep -q listens /tmp/log; do sleep 0.05; done")
    await output(first, "for f in hosts hostname resolv.conf; do echo evil >> /etc/$f; done")
    where = await namespace(first)
    await first.stop(delete=True)
    second = await started(make)
    assert await namespace(second) == where
    assert await output(second, "cat /etc/hosts /etc/hostname /etc/resolv.conf") == before
    await second.exec(f'(setsid python3 -c "{LISTEN}" > /tmp/log 2>&1 &)')
    await output(second, "while ! grep -q listens /tmp/log; do sleep 0.05; done")


@pytest.mark.parametrize("network", [NetworkMode.NO_NETWORK, NetworkMode.PUBLIC])
async def test_the_next_sandbox_may_listen_where_one_had_connections(
    make: Make, network: NetworkMode
) -> None:
    """What a closed connection leaves for a minute is not lent with the namespace."""
    first = await started(make, network=network)
    await output(first, f"python3 -c '{CONNECT}'")
    await first.stop(delete=True)
    second = await started(make, network=network)
    # A server that does not ask for an address that is in use.
    await output(second, f"python3 -c '{BIND}'")
    assert await output(second, "tail -qn +2 /proc/net/tcp | grep -c :47F1 || true") == "0"


async def test_sandboxes_with_a_network_do_not_reach_one_another(make: Make) -> None:
    one, other = [await started(make, network=NetworkMode.PUBLIC) for _ in range(2)]
    address = await output(one, "hostname -I")
    serve = LISTEN.replace("127.0.0.1", "").replace("18417", "18418")
    await one.exec(f'(setsid python3 -c "{serve}" > /tmp/log 2>&1 &)')
    await output(one, "while ! grep -q listens /tmp/log; do sleep 0.05; done")
    reach = "import socket; socket.create_connection(('{}', 18418), 2); print('reached')"
    assert await output(one, f'python3 -c "{reach.format(address)}"') == "reached"
    done = await other.exec(f'python3 -c "{reach.format(address)}"')
    assert "reached" not in (done.stdout or ""), done
    assert "TimeoutError" in (done.stderr or "")


async def test_a_network_that_keeps_nobody_apart_is_refused(make: Make, engine: Any) -> None:
    client = shared_engine()
    await ensure_public_network(client)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(networks, "PUBLIC_NETWORK", "bridge")
        with pytest.raises(SandboxStartError, match="does not keep its containers apart"):
            await ensure_public_network(client)


async def test_a_sandbox_knows_localhost_and_its_own_name(make: Make) -> None:
    sandbox = await started(make)
    assert "localhost" in await output(sandbox, "getent hosts localhost")
    assert await output(sandbox, "hostname") == await output(sandbox, "cat /etc/hostname")
    assert await output(sandbox, "echo '127.0.0.1 other' >> /etc/hosts; getent hosts other")


async def test_what_a_sandbox_may_not_change_in_its_namespace(make: Make) -> None:
    sandbox = await started(make)
    for attempt in (
        "echo 1 > /proc/sys/net/ipv4/ip_forward",
        'python3 -c "import socket, fcntl, struct; fcntl.ioctl(socket.socket(), 0x8914, '
        "struct.pack('16sh', b'lo', 0))\"",  # SIOCSIFFLAGS: takes the loopback down
    ):
        assert (await sandbox.exec(attempt)).return_code != 0
    assert await output(sandbox, "cat /sys/class/net/lo/operstate") == "unknown"


async def test_a_kept_sandbox_keeps_its_namespace(make: Make, engine: Any) -> None:
    first = await started(make)
    where = await namespace(first)
    await first.stop(delete=False)
    try:
        assert await namespace(await started(make)) != where
        kept = engine.containers.get(first.name)
        assert kept.exec_run("readlink /proc/self/ns/net").output.decode().strip() == where
    finally:
        engine.containers.get(first.name).remove(force=True)


async def test_a_holder_that_is_gone_is_replaced(make: Make, engine: Any) -> None:
    first = await started(make)
    await first.stop(delete=True)
    for holder in holders(engine):
        holder.remove(force=True)
    assert await output(await started(make), "echo works") == "works"


async def test_namespaces_with_and_without_a_network_are_not_mixed_up(make: Make) -> None:
    for network, devices in ((NetworkMode.NO_NETWORK, 1), (NetworkMode.PUBLIC, 2)):
        for _ in range(2):
            sandbox = await started(make, network=network)
            assert len((await output(sandbox, "ls /sys/class/net")).split()) == devices
            await sandbox.stop(delete=True)


async def test_a_public_sandbox_knows_what_the_engine_says_of_its_network(
    make: Make, engine: Any
) -> None:
    sandbox = await started(make, network=NetworkMode.PUBLIC)
    plain = engine.containers.run(
        BASE_IMAGE,
        ["sh", "-c", "cat /etc/resolv.conf; hostname -I"],
        network=PUBLIC_NETWORK,
        remove=True,
    ).decode()
    resolvers, _, address = plain.strip().rpartition("\n")
    assert await output(sandbox, "cat /etc/resolv.conf") == resolvers.strip()
    own = await output(sandbox, "hostname -I")
    assert own.rpartition(".")[0] == address.strip().rpartition(".")[0]
    assert own in await output(sandbox, "cat /etc/hosts")


async def test_an_old_namespace_is_not_lent_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await started(make)
    old = first._namespace
    await first.stop(delete=True)
    monkeypatch.setattr(namespaces, "_MAX_AGE_SEC", 0)
    assert (await started(make))._namespace is not old


def test_no_holder_outlives_its_engine(engine: Any, sdk_runtime: Runtime) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DIES_WITH_A_NAMESPACE, str(sdk_runtime.path)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        container = process.stdout.readline().strip()
        assert container in {found.id for found in engine.containers.list(ignore_removed=True)}
        process.kill()
    end = time.monotonic() + 20
    while container in {
        found.id for found in engine.containers.list(all=True, ignore_removed=True)
    }:
        assert time.monotonic() < end, "the holder is still there"
        time.sleep(0.1)


async def test_what_is_still_occupied_is_not_lent_again(make: Make) -> None:
    sandbox = await started(make)
    where = await namespace(sandbox)
    held = sandbox._namespace
    assert held is not None
    held.give_back()
    assert all(found is not held for found in namespaces._free[held.kind])
    assert await namespace(await started(make)) != where


def holders(engine: Any) -> list[Any]:
    mine = {"label": f"{labels.NAMESPACE}={instance_id()}"}
    found: list[Any] = engine.containers.list(all=True, filters=mine, ignore_removed=True)
    return found
