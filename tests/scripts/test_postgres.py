"""Finding PostgreSQL's programs, or the package that has them, on made-up machines."""

from pathlib import Path

import pytest

from tests.scripts.shell import bash, executable
from tests.scripts.test_docker import candidates


def test_programs_that_are_there_are_used(tmp_path: Path) -> None:
    executable(tmp_path / "17/bin/initdb", "#!/bin/sh\n")
    script = "apt_install() { echo installed; }; ensure_postgres && echo ready"
    done = bash(script, "apt", "postgres", environ={"POSTGRES_ROOT": str(tmp_path)})
    assert done.stdout == "ready\n"


@pytest.mark.parametrize(
    ("versions", "package"),
    [
        ({"postgresql_15": "15.18-0"}, "postgresql-15"),
        ({"postgresql_15": "15.18-0", "postgresql_17": "17.6-0"}, "postgresql-17"),
        ({}, "none"),
    ],
)
def test_the_newest_package_is_taken(versions: dict[str, str], package: str) -> None:
    script = f"{candidates(**versions)}postgres_package || echo none"
    assert bash(script, "apt", "postgres").stdout.strip() == package


def test_who_may_not_install_is_told_what_to_do(tmp_path: Path) -> None:
    script = "apt_usable() { return 1; }; ensure_postgres || echo absent"
    environ = {"POSTGRES_ROOT": str(tmp_path), "PATH": "/nowhere"}
    done = bash(script, "apt", "postgres", environ=environ)
    assert done.stdout == "absent\n"
    assert "install PostgreSQL" in done.stderr
