"""Which requirements reach a sandbox, and in which versions."""

import logging

import pytest

from harbor_backend.program.runtime.requirements import host_constraints, sandbox_requirements
from harbor_backend.program.runtime.sdk import Sdk

SDK = [
    "pydantic>=2",
    "rich>=14",
    "typer>=0.16",
    'aiohttp>=3; extra == "gateway"',
    'osmosis-ai[gateway]; extra == "server"',
    'fastapi>=0.1; extra == "server"',
    'strands-agents[openai]>=1; extra == "strands"',
    'openai-agents>=0.2; sys_platform == "linux" and extra == "openai-agents"',
    'winonly; sys_platform == "win32" and extra == "openai-agents"',
    'harbor>=0.25; extra == "harbor"',
    'osmosis-ai[server,harbor,strands,openai-agents]; extra == "full"',
]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ([], []),
        (["osmosis-ai"], []),
        (["idna", "idna"], ["idna"]),
        (["Osmosis_AI[strands]>=0.1"], ["strands-agents[openai]>=1"]),
        (["osmosis-ai[strands]; python_version < '3'"], []),
        (["osmosis-ai[server,harbor]"], ["fastapi>=0.1"]),
        (
            ["osmosis-ai[full] @ git+https://example.org/x"],
            ["fastapi>=0.1", "openai-agents>=0.2", "strands-agents[openai]>=1"],
        ),
        (["a>=1; sys_platform == 'linux'"], ['a>=1; sys_platform == "linux"']),
    ],
)
def test_the_sdk_is_replaced_by_what_its_extras_need(wanted: list[str], found: list[str]) -> None:
    assert sandbox_requirements(wanted, SDK, "0.4.0") == sorted([*found, "pydantic>=2"])


def test_a_range_that_excludes_the_hosts_sdk_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        sandbox_requirements(["osmosis-ai>=9"], SDK, "0.4.0")
    assert "osmosis-ai>=9" in caplog.text
    assert "0.4.0" in caplog.text


def test_constraints_follow_what_the_requirements_lead_to() -> None:
    host = {"httpx": "0.28.1", "certifi": "2026.1", "ruff": "0.12", "osmosis-ai": "0.4"}
    assert host_constraints(["httpx>=0.28"], host) == ["certifi==2026.1", "httpx==0.28.1"]
    assert host_constraints(["httpx; sys_platform == 'win32'", "absent"], host) == []


def test_the_running_sdk_knows_its_own_requirements() -> None:
    sdk = Sdk.running()
    assert sdk.version
    found = sandbox_requirements(["osmosis-ai[strands]"], sdk.requires, sdk.version)
    names = [text.split(">")[0].split("<")[0] for text in found]
    assert {"anyio", "httpx", "openai", "pydantic", "strands-agents", "tenacity"} == set(names)
