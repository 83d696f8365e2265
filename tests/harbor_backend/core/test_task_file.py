"""Changing a staged task's ``task.toml``: what is wanted is in it, and the rest as it was."""

import tomllib
from pathlib import Path

import pytest

from harbor_backend.core.task_file import deny_network_by_default, set_image

NO_NETWORK = "no-network"

# text: what its table [environment] holds afterwards
NETWORKS: dict[str, tuple[str, dict[str, object]]] = {
    "nothing": ("", {"network_mode": NO_NETWORK}),
    "another table": ("[agent]\ntimeout_sec = 5\n", {"network_mode": NO_NETWORK}),
    "an empty table": ("[environment]\n", {"network_mode": NO_NETWORK}),
    "a table": ("[environment]\ncpus = 2\n", {"cpus": 2, "network_mode": NO_NETWORK}),
    "an inline table": ("environment = {cpus = 2}\n", {"cpus": 2, "network_mode": NO_NETWORK}),
    "dotted keys": ("environment.cpus = 2\n", {"cpus": 2, "network_mode": NO_NETWORK}),
    "a table below it": (
        "[environment.env]\nA = '1'\n",
        {"env": {"A": "1"}, "network_mode": NO_NETWORK},
    ),
    "a table in the middle": (
        "[environment]\ncpus = 2\n\n[[steps]]\nname = 'a'\n",
        {"cpus": 2, "network_mode": NO_NETWORK},
    ),
    "a mode": ("[environment]\nnetwork_mode = 'public'\n", {"network_mode": "public"}),
    "its former name": ("[environment]\nallow_internet = true\n", {"allow_internet": True}),
    "its former name, denied": (
        "[environment]\nallow_internet = false\n",
        {"allow_internet": False},
    ),
    "a network of the agent's alone": (
        "[agent]\nnetwork_mode = 'public'\n",
        {"network_mode": NO_NETWORK},
    ),
}


@pytest.mark.parametrize("case", NETWORKS)
def test_a_task_that_does_not_say_gets_no_network(case: str, tmp_path: Path) -> None:
    text, expected = NETWORKS[case]
    file = tmp_path / "task.toml"
    file.write_text(text)
    deny_network_by_default(tmp_path)
    before, after = tomllib.loads(text), tomllib.loads(file.read_text())
    assert after == {**before, "environment": expected}


@pytest.mark.parametrize(
    "text",
    ["[environment]\nnetwork_mode='public'   # wanted\r\n", "[environment]\nallow_internet=true"],
)
def test_a_task_that_says_it_stays_as_it_is_to_the_byte(text: str, tmp_path: Path) -> None:
    file = tmp_path / "task.toml"
    file.write_bytes(text.encode())
    deny_network_by_default(tmp_path)
    assert file.read_bytes() == text.encode()


def test_comments_and_order_stay(tmp_path: Path) -> None:
    file = tmp_path / "task.toml"
    file.write_text("# first\nversion = '1'\n\n[environment] # here\ncpus = 2 # two\n\n[agent]\n")
    deny_network_by_default(tmp_path)
    lines = [line for line in file.read_text().splitlines() if line]
    assert lines == [
        "# first",
        "version = '1'",
        "[environment] # here",
        "cpus = 2 # two",
        'network_mode = "no-network"',
        "[agent]",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"docker_image": "new:1"}),
        ("[environment]\ncpus = 2\n", {"cpus": 2, "docker_image": "new:1"}),
        ("[environment]\ndocker_image = 'old:1'\n", {"docker_image": "new:1"}),
    ],
)
def test_a_task_gets_its_image(text: str, expected: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text(text)
    set_image(tmp_path, "new:1")
    assert tomllib.loads((tmp_path / "task.toml").read_text()) == {"environment": expected}
