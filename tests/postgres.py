"""A PostgreSQL server of the tests' own: in a temporary directory, on a Unix socket."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_OPTIONS = "-c listen_addresses='' -c fsync=on -c max_connections=200 -k {directory}"


@dataclass(frozen=True)
class Cluster:
    """A running server; ``directory`` holds its socket."""

    directory: Path
    binaries: Path

    @contextmanager
    def database(self) -> Iterator[str]:
        """A fresh database for the block; yields its URL."""
        name = f"t_{secrets.token_hex(6)}"
        self._sql(f"CREATE DATABASE {name}")
        try:
            yield f"postgresql://postgres@/{name}?host={self.directory}"
        finally:
            self._sql(f"DROP DATABASE {name} WITH (FORCE)")

    def restart(self) -> None:
        """Stop the server, which drops every connection, and start it again."""
        self.run("pg_ctl", "-D", "data", "-m", "fast", "-w", "stop")
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = _OPTIONS.format(directory=self.directory)
        self.run("pg_ctl", "-D", "data", "-l", "log", "-w", "-o", options, "start")

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as a user that it accepts."""
        done = subprocess.run(
            [self.binaries / program, *arguments],
            cwd=self.directory,
            user="postgres" if os.geteuid() == 0 else None,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        assert done.returncode == 0, f"{program}: {done.stderr}"

    def _sql(self, statement: str) -> None:
        self.run("psql", "-h", str(self.directory), "-U", "postgres", "-qc", statement)


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A new server for the block."""
    # Not where this run keeps its own files: the server's user cannot enter there.
    directory = Path(tempfile.mkdtemp(prefix="osmosis-pg-", dir="/tmp"))
    cluster = Cluster(directory, _binaries())
    try:
        if os.geteuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(directory, owner.pw_uid, owner.pw_gid)
        cluster.run("initdb", "-D", "data", "-A", "trust", "-U", "postgres", "-E", "UTF8")
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parts[-2]))
    on_path = shutil.which("initdb")
    if found:
        return found[-1]
    if on_path:
        return Path(on_path).resolve().parent
    pytest.fail(
        "no PostgreSQL server is installed: run scripts/setup.sh, or leave these tests out "
        "with -m 'not postgres'"
    )
