"""What a sandbox may do, and what every program in it still can."""

import json
from typing import Any

import pytest

from harbor_backend.places.docker import walls
from harbor_backend.places.docker.engine import Engine
from harbor_backend.places.docker.seccomp import seccomp_profile
from harbor_backend.places.docker.system_calls import ALLOWED, REFUSED
from harbor_backend.places.docker.walls import MAX_PIDS, Walls, walls_of
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.places.docker.conftest import Make

MIB = 1024**2

ACCOUNTS = """
set -e
useradd -m -s /bin/bash dev
groupadd crew
usermod -aG crew dev
echo dev:secret | chpasswd
[ "$(su dev -c 'id -un')" = dev ]
[ "$(runuser -u dev -- id -un)" = dev ]
chown -R dev:crew /home/dev
mkfifo /tmp/pipe
mknod /tmp/null c 1 3
chroot / true
userdel -r dev 2>/dev/null
echo done
"""


def test_no_system_call_is_both_allowed_and_refused() -> None:
    rules = json.loads(seccomp_profile())["syscalls"]
    assert set(ALLOWED).isdisjoint(REFUSED)
    assert len(set(ALLOWED)) == len(ALLOWED)
    assert set(ALLOWED).isdisjoint({"clone", "clone3", "socket", "socketcall", "personality"})
    assert all(rule["names"] for rule in rules)


class Informed(Engine):
    """An engine that says this of itself."""

    def __init__(self, name: str, **info: Any) -> None:
        super().__init__(f"tcp://{name}:1")
        self._info = info
        self.asked = 0

    async def call(self, method: str, path: str, **arguments: Any) -> Any:
        assert (method, path) == ("GET", "/info")
        self.asked += 1
        return self._info


SECCOMP = ["name=apparmor", "name=seccomp,profile=builtin"]


@pytest.mark.parametrize(
    ("info", "expected", "warned"),
    [
        (
            {"SecurityOptions": SECCOMP, "Architecture": "x86_64", "MemTotal": 4096 * MIB},
            Walls(True, 2048),
            False,
        ),
        ({"SecurityOptions": SECCOMP, "Architecture": "riscv64"}, Walls(False, None), False),
        ({"SecurityOptions": None, "Architecture": "x86_64"}, Walls(False, None), True),
    ],
    ids=["an engine", "another processor", "no seccomp"],
)
async def test_an_engine_is_asked_once(
    info: dict[str, Any],
    expected: Walls,
    warned: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(walls, "_known", {})
    engine = Informed("one", **info)
    assert [await walls_of(engine) for _ in range(2)] == [expected, expected]
    assert engine.asked == 1
    assert ("no seccomp" in caplog.text) is warned
    config = expected.host_config(None)
    assert bool(config["SecurityOpt"]) is expected.has_profile
    await engine.aclose()


@pytest.mark.docker
async def test_accounts_users_and_nodes_can_be_made(make: Make) -> None:
    sandbox = make(image=BASE_IMAGE)
    await sandbox.start(force_build=False)
    done = await sandbox.exec(ACCOUNTS)
    assert (done.stdout or "").endswith("done\n"), done


@pytest.mark.docker
async def test_a_task_that_declares_nothing_has_limits(make: Make, engine: Any) -> None:
    sandbox = make(image=BASE_IMAGE)
    await sandbox.start(force_build=False)
    config = engine.containers.get(sandbox.name).attrs["HostConfig"]
    half = engine.info()["MemTotal"] // 2 // MIB * MIB
    assert (config["Memory"], config["MemorySwap"]) == (half, half)
    assert config["PidsLimit"] == MAX_PIDS
    assert config["OomScoreAdj"] > 0
    bounds = "grep CapBnd /proc/self/status"
    plain = engine.containers.run(BASE_IMAGE, ["sh", "-c", bounds], remove=True)
    own = (await sandbox.exec(bounds)).stdout or ""
    assert int(plain.split()[1], 16) ^ int(own.split()[1], 16) == 1 << 13 | 1 << 29
    assert {name.removeprefix("CAP_") for name in config["CapDrop"]} == {"AUDIT_WRITE", "NET_RAW"}
