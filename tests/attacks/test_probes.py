"""What an agent with root gets hold of when it looks around."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox_images import BASE_IMAGE
from tests.attacks.catalogue import NETWORKS, Verdict, probes
from tests.harbor_backend.rollouts.acting import said, shell
from tests.harbor_backend.rollouts.conftest import MakeBackend, MakeTask, run

pytestmark = pytest.mark.docker

PROGRAM = Path(__file__).with_name("probes.py")

# Whoever has these capabilities, and every system call, gets hold of all this.
CAPABILITIES = ["SYS_ADMIN", "NET_ADMIN", "SYS_TIME", "SYS_PTRACE", "SYSLOG", "SYS_PACCT"]
WON_WITHOUT_WALLS = {
    "strong_capabilities",
    "user_namespace",
    "mount_namespace",
    "network_namespace",
    "enter_first_process",
    "mount_a_filesystem",
    "mount_cgroups_for_a_release_agent",
    "change_the_host_name",
    "programs_in_the_kernel",
    "performance_events",
    "a_ring_for_system_calls",
    "a_key_in_the_kernel",
    "keys_of_others",
    "set_the_clock",
    "account_processes",
    "the_kernels_log",
    "trace_the_first_process",
    "memory_of_the_first_process",
    "a_socket_to_the_hypervisor",
    "a_socket_by_the_old_door",
    "a_record_in_the_audit_log",
    "a_socket_for_whole_frames",
    "a_raw_socket",
    "a_route_of_its_own",
}


@pytest.mark.parametrize("network", NETWORKS)
async def test_it_gets_hold_of_nothing(
    make_backend: MakeBackend, make_task: MakeTask, network: str
) -> None:
    task = make_task(
        toml=f'[environment]\nnetwork_mode = "{network}"\n', dockerfile=f"FROM {BASE_IMAGE}\n"
    )
    backend = make_backend(agent="adversary:Act", tasks_dir=task)
    command = f"cat >/tmp/probes.py <<'END'\n{PROGRAM.read_text()}\nEND\npython3 /tmp/probes.py"
    found = json.loads(said(await run(backend, **shell(command), grade=False)))
    expected = {attack.name: attack.verdicts[network] for attack in probes()}
    assert found.keys() == expected.keys()
    assert [name for name, end in found.items() if "broken" in end] == []
    got = {name: end["got"] for name, end in found.items() if end.get("got")}
    assert got.keys() == {name for name, to_be in expected.items() if to_be is Verdict.OPEN}, got


def test_without_walls_it_gets_hold_of_all_that(engine: Any) -> None:
    printed = engine.containers.run(
        BASE_IMAGE,
        ["python3", "/probes.py"],
        cap_add=CAPABILITIES,
        security_opt=["seccomp=unconfined"],
        volumes={str(PROGRAM): {"bind": "/probes.py", "mode": "ro"}},
        remove=True,
    )
    found = json.loads(printed)
    got = {name for name, end in found.items() if end.get("got")}
    assert got >= WON_WITHOUT_WALLS, {name: found[name] for name in WON_WITHOUT_WALLS - got}
