"""The double has the surface that Harbor's source calls, and refuses what is not of it."""

import ast
import asyncio
import inspect
import socket
import time
from pathlib import Path
from typing import Any

import harbor.environments.skypilot as harbors
import pytest

from sandbox_images import BASE_IMAGE

pytestmark = pytest.mark.docker

SOURCE = Path(harbors.__file__).read_text()


def harbors_calls() -> list[tuple[str, str, int, set[str]]]:
    """Every ``….<name>.aio(…)`` in Harbor's source: line, name, positional count, keywords."""
    found = []
    for node in ast.walk(ast.parse(SOURCE)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "aio"
            and isinstance(node.func.value, ast.Attribute)
        ):
            name = node.func.value.attr
            keywords = {keyword.arg for keyword in node.keywords if keyword.arg}
            found.append((f"{name}:{node.lineno}", name, len(node.args), keywords))
    return found


CALLS = harbors_calls()


def signature(name: str) -> inspect.Signature:
    """Of an entry point of the double, without the handle it is bound to."""
    from sky_sandbox_double import sdk

    sandbox = sdk.Sandbox("any")
    if name == "exec":
        return inspect.signature(sandbox.exec.aio)
    owner: Any = sdk if hasattr(sdk, name) else sandbox
    return inspect.signature(getattr(owner, name)._function)


def test_harbor_calls_what_we_think() -> None:
    """When Harbor calls more, the double and our environment have to be looked at again."""
    assert {name for _, name, _, _ in CALLS} == {
        "create", "terminate", "exec", "write_bytes", "read_bytes",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "count", "keywords"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS]
)
def test_the_double_takes_harbors_arguments(name: str, count: int, keywords: set[str]) -> None:
    bound = signature(name).bind(*["x"] * count, **dict.fromkeys(keywords, "x"))
    assert set(bound.arguments) >= keywords


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("ls", set()),
        ("create_pool", {"name", "image", "replicas", "cpus", "memory_gb"}),
        ("set_pool_size", {"name", "replicas"}),
        ("delete_pool", {"name"}),
    ],
)
def test_the_documented_rest_is_there(name: str, parameters: set[str]) -> None:
    assert set(signature(name).parameters) == parameters


def test_it_is_what_skypilot_loads() -> None:
    import sky_sandbox_double.sdk
    from sky import sandbox

    assert sandbox is sky_sandbox_double.sdk
    assert harbors._HAS_SKYPILOT


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "a", "image": "i", "gpus": 1}, "unexpected keyword"),
        ({"name": "A", "image": "i"}, "DNS-1123"),
        ({"name": "a" * 54, "image": "i"}, "DNS-1123"),
        ({"name": "a", "pool": "p", "image": "i"}, "excludes image"),
        ({"name": "a", "pool": "p", "block_network": False}, "excludes block_network"),
        ({"name": "a", "pool": "p", "cpus": 1, "memory_gb": 1}, "excludes cpus, memory_gb"),
        ({"name": "a", "pool": "nowhere"}, "no pool"),
        ({"name": "a"}, "no default pool"),
    ],
)
async def test_a_wrong_creation_is_refused(arguments: dict[str, Any], said: str) -> None:
    from sky_sandbox_double import sdk

    with pytest.raises((sdk.SandboxError, TypeError), match=said):
        await sdk.create.aio(**arguments)


async def test_a_sandbox_behaves_as_documented() -> None:
    from sky_sandbox_double import sdk

    sandbox = await sdk.create.aio(name="documented", image=BASE_IMAGE, env={"A": "1"}, timeout=120)
    try:
        with pytest.raises(sdk.SandboxError, match="there already"):
            await sdk.create.aio(name="documented", image=BASE_IMAGE)
        handle = await sandbox.exec.aio(
            "sh", "-c", "echo $A $B; echo no >&2; exit 3", env={"B": "2"}
        )
        assert await handle.wait() == 3
        assert (handle.stdout.read(), handle.stderr.read()) == ("1 2\n", "no\n")
        plain = await sandbox.exec.aio("echo", "$A *")
        assert await plain.wait() == 0
        assert plain.stdout.read() == "$A *\n"
        data = bytes(range(256)) * 5000
        await sandbox.write_bytes.aio(data, "/tmp/data")
        assert await sandbox.read_bytes.aio("/tmp/data") == data
        with pytest.raises(sdk.SandboxError):
            await sandbox.write_bytes.aio(data, "/no/such/directory/data")
        with pytest.raises(sdk.SandboxError):
            await sandbox.read_bytes.aio("/no/such/file")
        with pytest.raises(sdk.SandboxError, match="3600"):
            await sandbox.exec.aio("true", timeout_seconds=3601)
        overrun = await sandbox.exec.aio("sh", "-c", "sleep 77 & sleep 77", timeout_seconds=1)
        assert await overrun.wait() != 0
        left = await sandbox.exec.aio("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        await left.wait()
        assert "sleep 77" not in left.stdout.read()
    finally:
        await sandbox.terminate.aio(wait=True)
    assert "documented" not in {box.name for box in sdk.ls()}
    await sandbox.terminate.aio(wait=True)


async def test_a_command_is_the_containers_and_no_more() -> None:
    from sky_sandbox_double import sdk

    sandbox = await sdk.create.aio(name="limited", image=BASE_IMAGE, timeout=120)
    try:
        # What the container's own processes may not, and what they are.
        script = "mount -t tmpfs none /mnt || echo refused; hostname; ls -d /proc/[0-9]* | wc -l"
        handle = await sandbox.exec.aio("sh", "-c", script, workdir="/usr")
        assert await handle.wait() == 0
        refused, name, processes = handle.stdout.read().split()
        assert refused == "refused"
        assert name != socket.gethostname()
        assert int(processes) < 10
        began = time.monotonic()
        left = await sandbox.exec.aio("sh", "-c", "sleep 66 >/dev/null 2>&1 & echo left")
        assert await left.wait() == 0
        assert time.monotonic() - began < 30, "it waited for what the command left"
        assert left.stdout.read() == "left\n"
        missing = await sandbox.exec.aio("no-such-program")
        assert await missing.wait() == 127
    finally:
        await sandbox.terminate.aio(wait=True)
    with pytest.raises(sdk.SandboxError, match="no sandbox"):
        await (await sandbox.exec.aio("true")).wait()


async def test_a_sandbox_that_ends_takes_its_commands_along() -> None:
    from sky_sandbox_double import sdk

    sandbox = await sdk.create.aio(name="ended", image=BASE_IMAGE, timeout=120)
    running = asyncio.create_task((await sandbox.exec.aio("sleep", "300")).wait())
    await sandbox.read_bytes.aio("/etc/hostname")
    await sandbox.terminate.aio(wait=True)
    with pytest.raises(sdk.SandboxError, match=r"has ended|no sandbox"):
        await running


async def test_a_sandbox_ends_with_its_lifetime() -> None:
    from sky_sandbox_double import sdk

    from tests.harbor_backend.rollouts.conftest import until

    await sdk.create.aio(name="short-lived", image=BASE_IMAGE, timeout=1)
    await until(lambda: "short-lived" not in {box.name for box in sdk.ls()})
