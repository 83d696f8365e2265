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
    """What these tests are run with must not reach the scripts under test, nor make's own words."""
    for name in ("REQUIRE_ALL", "REQUIRE_DOCKER", "ARGS", "SETUP", "MAKEFLAGS", "MAKEOVERRIDES"):
        monkeypatch.delenv(name, raising=False)


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


def ci(root: Path, **recipes: str) -> Path:
    """A made-up checkout of .ci/run, whose Makefile has these recipes instead of harmless ones."""
    script = checkout(root, ".ci/run")
    for part in ("say", "stages"):
        checkout(root, f"scripts/lib/{part}.sh")
    passed = "@echo '=== 10 passed, 1 skipped in 0.10s ==='"
    recipes = {
        **{target: f"@echo {target} done" for target in ("setup", "lint", "setup-tests")},
        **dict.fromkeys(("test", "test-next", "test-skypilot"), passed),
        **{target.replace("_", "-"): recipe for target, recipe in recipes.items()},
    }
    makefile = "".join(f"{target}:\n\t{recipe}\n" for target, recipe in recipes.items())
    (root / "Makefile").write_text(f"SHELL := bash\n.PHONY: {' '.join(recipes)}\n{makefile}")
    return script


@pytest.mark.parametrize(
    ("recipe", "code", "last"),
    [
        ("@echo '=== 3 passed in 0.10s ==='; echo after", 0, "39 passed, 0 failed"),
        ("@echo '=== 1 failed, 2 passed in 61.00s (0:01:01) ==='; exit 1", 1,
         "36 passed, 3 failed"),
        ("@echo '== 1 failed, 2 passed, 3 errors in 6.00s =='; exit 1", 1, "36 passed, 12 failed"),
        ("@echo 'set-up failed'; exit 1", 1, "no closing line from pytest"),
        ("@echo nothing ran", 1, "no closing line from pytest"),
    ],
)  # fmt: skip
def test_ci_ends_with_the_sum_of_what_pytest_closed_with(
    tmp_path: Path, recipe: str, code: int, last: str
) -> None:
    """``test`` runs three times: in containers, the conformance suite there, and the others."""
    done = run(ci(tmp_path, test=recipe), cwd=tmp_path)
    assert "lint done" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(last)
    assert done.returncode == code


@pytest.mark.parametrize("target", ["setup", "lint", "setup_tests"])
def test_ci_stops_at_lint_and_set_up(tmp_path: Path, target: str) -> None:
    done = run(ci(tmp_path, **{target: "@exit 1"}, test="@echo tested"), cwd=tmp_path)
    assert done.returncode != 0
    assert "tested" not in done.stdout


def test_ci_names_what_failed_before_its_last_line(tmp_path: Path) -> None:
    named = "FAILED tests/a.py::test_b - assert 1 == 2"
    recipe = f"@echo '{named}'; echo noise; echo '== 1 failed, 2 passed in 6.00s =='; exit 1"
    done = run(ci(tmp_path, test_next=recipe), cwd=tmp_path)
    assert done.stdout.splitlines()[-2:] == [f"harbor-next: {named}", "52 passed, 1 failed"]


def test_ci_fails_where_a_stage_does_whose_tests_all_passed(tmp_path: Path) -> None:
    recipe = "@echo '=== 7 passed in 0.10s ==='; exit 1"
    done = run(ci(tmp_path, test_next=recipe), cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "57 passed, 0 failed"
    assert done.returncode == 1


def test_ci_runs_every_test_once(tmp_path: Path) -> None:
    """What the three runs of ``test`` leave out is what the others run."""
    recipe = "@echo \"ran $@: $(ARGS)\"; echo '=== 1 passed in 0.10s ==='"
    targets = dict.fromkeys(("test", "test_next", "test_skypilot"), recipe)
    done = run(ci(tmp_path, **targets), cwd=tmp_path)
    ran = [line.removeprefix("ran ") for line in done.stdout.splitlines() if "ran test" in line]
    folder = "tests/harbor_backend/places/skypilot"
    suite = f"{folder}/with_sky/test_conformance.py"
    assert sorted(ran) == [
        "test-next: ",
        f"test-skypilot: {folder} --ignore={suite}",
        f"test-skypilot: {suite}",
        "test: -m docker --ignore=tests/conformance",
        "test: -m docker tests/conformance",
        "test: -m not docker",
    ]
    assert (REPO / suite).is_file()


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
