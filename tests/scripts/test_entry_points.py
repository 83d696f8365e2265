"""What a caller of the scripts sees: exit codes, closing lines, what was left out."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.scripts.shell import REPO, bash, executable


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def checkout(root: Path, script: str) -> Path:
    """A made-up checkout that holds a copy of one script."""
    copy = root / script
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(REPO / script, copy)
    return copy


def test_setup_refuses_an_option_that_it_does_not_know() -> None:
    done = run(REPO / "scripts/setup.sh", "--no-dokcer", cwd=REPO)
    assert done.returncode == 1
    assert "'--no-dokcer'" in done.stderr
    assert "--no-docker and --require-docker" in done.stderr


def made_up(root: Path, *, docker: bool, postgres: bool, code: int = 0) -> Path:
    """A made-up checkout of test.sh, on a machine that has these."""
    script = checkout(root, "scripts/test.sh")
    for part in ("say", "apt"):
        checkout(root, f"scripts/lib/{part}.sh")
    library = root / "scripts/lib/postgres.sh"
    library.write_text(f"ensure_postgres() {{ return {0 if postgres else 1}; }}\n")
    executable(root / ".venv/bin/python", f'#!/bin/sh\necho "ran: $*"\nexit {code}\n')
    (root / ".venv/.osmosis-docker").write_text("ready\n" if docker else "absent\n")
    return script


@pytest.fixture(autouse=True)
def nothing_required(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests are run with must not reach the scripts under test."""
    monkeypatch.delenv("REQUIRE_ALL", raising=False)
    monkeypatch.delenv("REQUIRE_DOCKER", raising=False)


@pytest.mark.parametrize("code", [0, 1, 5])
@pytest.mark.parametrize(
    ("docker", "postgres", "expression"),
    [
        (False, True, "not docker"),
        (True, False, "not postgres"),
        (False, False, "not docker and not postgres"),
    ],
)
def test_the_tests_say_what_they_left_out(
    tmp_path: Path, code: int, docker: bool, postgres: bool, expression: str
) -> None:
    script = made_up(tmp_path, docker=docker, postgres=postgres, code=code)
    done = run(script, "-x", cwd=tmp_path)
    assert f"ran: -m pytest -m {expression} -x" in done.stdout
    assert done.stdout.count("LEFT OUT") == (not docker) + (not postgres)
    assert done.returncode == code


def test_where_there_is_everything_every_test_runs(tmp_path: Path) -> None:
    script = made_up(tmp_path, docker=True, postgres=True)
    done = run(script, cwd=tmp_path)
    assert done.stdout == "ran: -m pytest\n"


def test_where_everything_is_required_nothing_is_left_out(tmp_path: Path) -> None:
    script = made_up(tmp_path, docker=True, postgres=False)
    done = run("env", "REQUIRE_ALL=1", script, cwd=tmp_path)
    assert done.returncode == 1
    assert "ran:" not in done.stdout
    assert "PostgreSQL is required" in done.stderr


@pytest.mark.parametrize(
    ("recipe", "code", "last"),
    [
        ("@echo '=== 3 passed in 0.10s ==='; echo after", 0, "=== 3 passed in 0.10s ==="),
        ("@echo '=== 1 failed, 2 passed in 61.00s (0:01:01) ==='; exit 1", 2,
         "=== 1 failed, 2 passed in 61.00s (0:01:01) ==="),
        ("@echo 'set-up failed'; exit 1", 1, "no closing line from pytest"),
        ("@echo nothing ran", 1, "no closing line from pytest"),
    ],
)  # fmt: skip
def test_ci_ends_with_the_closing_line_of_pytest(
    tmp_path: Path, recipe: str, code: int, last: str
) -> None:
    script = checkout(tmp_path, ".ci/run")
    (tmp_path / "Makefile").write_text(
        f"lint test-next test-skypilot:\n\t@echo linted\ntest:\n\t{recipe}\n"
    )
    done = run(script, cwd=tmp_path)
    assert "linted" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(last)
    assert done.returncode == code


def test_ci_stops_at_lint(tmp_path: Path) -> None:
    script = checkout(tmp_path, ".ci/run")
    (tmp_path / "Makefile").write_text(
        "lint test-next test-skypilot:\n\t@exit 1\ntest:\n\t@echo tested\n"
    )
    done = run(script, cwd=tmp_path)
    assert done.returncode != 0
    assert "tested" not in done.stdout


def test_the_environment_is_made_anew_when_the_lock_changes(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    before = bash(f'REPO="{tmp_path}" venv_wanted; REPO="{tmp_path}" venv_wanted', "venv")
    first, again = before.stdout.split()
    (tmp_path / "requirements.lock").write_text("anyio==4.9.0\n")
    after = bash(f'REPO="{tmp_path}" venv_wanted', "venv").stdout.strip()
    assert first == again
    assert after != first


@pytest.mark.parametrize(
    ("environ", "index"),
    [
        ({"PIP_INDEX_URL": "https://index.example/simple"}, "https://index.example/simple"),
        ({"PIP_INDEX_URL": "file:///srv/wheels"}, "none"),
        ({"PIP_INDEX_URL": "https://a.example", "UV_DEFAULT_INDEX": "https://b.example"}, "https://b.example"),
    ],
)  # fmt: skip
def test_uv_uses_the_index_of_pip_unless_it_was_told_another(
    environ: dict[str, str], index: str
) -> None:
    script = 'use_pip_index; printf "%s" "${UV_DEFAULT_INDEX:-none}"'
    environ = {"UV_INDEX_URL": "", "UV_CONFIG_FILE": "", **environ}
    assert bash(script, "apt", "uv", environ=environ).stdout == index


@pytest.mark.parametrize(
    ("told", "content", "trusted"),
    [("", "PEM", "bundle"), ("", "", "none"), ("/own.pem", "PEM", "/own.pem")],
)
def test_uv_trusts_what_this_machine_trusts(
    tmp_path: Path, told: str, content: str, trusted: str
) -> None:
    bundle = tmp_path / "bundle"
    bundle.write_text(content)
    environ = {"SSL_CERT_FILE": told, "CA_BUNDLE": str(bundle)}
    script = 'trust_system_cas; printf "%s" "${SSL_CERT_FILE:-none}"'
    answer = bash(script, "apt", "uv", environ=environ).stdout
    assert answer == (str(bundle) if trusted == "bundle" else trusted)
