"""The command itself: quick help, one-line errors, exit codes."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import COMMAND, ROOT, Osmosis

HEAVY = ("pydantic", "httpx", "harbor", "docker", "aiohttp", "rich", "anyio", "asyncio")


def cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def test_help_comes_up_at_once() -> None:
    assert min(cpu_seconds([*COMMAND, "--help"]) for _ in range(3)) < 0.4


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from osmosis_ai.cli.main import run; code = run(['--help']);"
        f"sys.exit(code or ', '.join(m for m in {HEAVY} if m in sys.modules) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_every_command_is_in_the_help(osmosis: Osmosis, arguments: tuple[str, ...]) -> None:
    done = osmosis(*arguments)
    assert done.code == 0
    for command in ("demo", "trials", "doctor", "sandboxes"):
        assert f"\n  {command} " in done.out


@pytest.mark.parametrize("group", ["trials", "sandboxes"])
def test_a_group_alone_prints_its_help(osmosis: Osmosis, group: str) -> None:
    done = osmosis(group)
    assert done.code == 0
    assert f"Usage: osmosis {group}" in done.out


def test_version(osmosis: Osmosis) -> None:
    done = osmosis("--version")
    assert done.code == 0
    assert done.out.startswith("osmosis 0")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("dance",), "No such command"),
        (("trials", "run"), "Try 'osmosis trials run --help'"),
        (("trials", "run", "."), "--agent"),
        (("trials", "run", ".", "--agent", "nop", "--attempts", "0"), "--attempts"),
        (("trials", "run", ".", "--agent", "nop", "--keep", "some"), "'failed'"),
        (("trials", "run", ".", "--agent", "nop", "--environment", "moon"), "'harbor-docker'"),
        (("doctor", "--fix"), "--fix"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(
    osmosis: Osmosis, arguments: tuple[str, ...], text: str
) -> None:
    done = osmosis(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("osmosis: ")
    assert done.err.count("\n") == 1
    assert text in done.err


@pytest.mark.parametrize("command", [("sandboxes", "ls"), ("trials", "run", ".", "--agent", "nop")])
def test_a_missing_extra_is_named(command: tuple[str, ...], tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['platformdirs'] = sys.modules['harbor'] = None;"
        f"from osmosis_ai.cli.main import run; sys.exit(run({command!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert 'pip install "osmosis-ai[harbor]"' in done.stderr
    assert "Traceback" not in done.stderr
