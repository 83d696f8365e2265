"""Decisions about the engine and its plug-ins, against made-up machines."""

from pathlib import Path

import pytest

from tests.scripts.shell import bash


def candidates(**versions: str) -> str:
    """Bash text that makes these the versions which apt would install."""
    cases = "\n".join(f"{name.replace('_', '-')}) echo {v} ;;" for name, v in versions.items())
    return f'apt_candidate() {{ case "$1" in {cases}\n*) ;; esac; }}\n'


FROM_TRIXIE = "docker-compose/trixie docker-buildx/trixie"
FROM_VENDOR = "docker-compose-plugin docker-buildx-plugin"
COMPOSE_V1 = {"docker_compose": "1.29.2-3"}
COMPOSE_V2 = {"docker_compose": "2.26.1-4", "docker_buildx": "0.13.1"}
VENDOR = {"docker_compose_plugin": "2.39.0"}


@pytest.mark.parametrize(
    ("machine", "codename", "packages"),
    [
        (candidates(**COMPOSE_V1), "bookworm", FROM_TRIXIE),
        (candidates(), "bookworm", FROM_TRIXIE),
        (candidates(**COMPOSE_V2), "trixie", "docker-compose docker-buildx"),
        (candidates(**COMPOSE_V1, **VENDOR), "bookworm", FROM_VENDOR),
    ],
)
def test_compose_comes_from_where_the_release_has_it(
    machine: str, codename: str, packages: str
) -> None:
    done = bash(f"{machine}compose_packages {codename}", "apt", "compose")
    assert done.stdout.strip() == packages


def test_a_release_without_compose_is_told_apart() -> None:
    machine = candidates(**COMPOSE_V1)
    done = bash(f"{machine}compose_packages bullseye || echo none", "apt", "compose")
    assert done.stdout.strip() == "none"


@pytest.mark.parametrize(
    ("machine", "packages"),
    [
        (candidates(), "docker.io"),
        (candidates(docker_cli="26.1.5"), "docker.io docker-cli"),
    ],
)
def test_the_client_is_a_package_of_its_own_or_not(machine: str, packages: str) -> None:
    assert bash(f"{machine}engine_packages", "apt", "engine").stdout.strip() == packages


class Processes:
    """A made-up /proc and /var/run."""

    def __init__(self, root: Path) -> None:
        self.proc = root / "proc"
        self.run = root / "run"
        self.proc.mkdir()
        self.run.mkdir()
        self.pid_file = self.run / "docker.pid"

    def alive(self, pid: int, name: str, state: str = "S (sleeping)") -> None:
        (self.proc / str(pid)).mkdir()
        (self.proc / str(pid) / "comm").write_text(f"{name}\n")
        status = f"Name:\t{name}\nUmask:\t0022\nState:\t{state}\n"
        (self.proc / str(pid) / "status").write_text(status)

    def bash(self, script: str) -> str:
        environ = {"PROC_DIR": str(self.proc), "RUN_DIR": str(self.run)}
        done = bash(script, "apt", "engine", environ=environ)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


def test_a_living_daemon_is_believed(processes: Processes) -> None:
    processes.alive(42, "dockerd")
    processes.pid_file.write_text("42")
    assert processes.bash("drop_stale_pids; living_dockerd") == "42"
    assert processes.pid_file.exists()


def test_a_daemon_without_a_pid_file_is_found(processes: Processes) -> None:
    processes.alive(41, "bash")
    processes.alive(42, "dockerd")
    assert processes.bash("living_dockerd") == "42"


@pytest.mark.parametrize(
    "left", [None, ("nginx", "S (sleeping)"), ("dockerd", "Z (zombie)"), ("dockerd", "X (dead)")]
)
def test_the_pid_file_of_a_daemon_that_is_gone_is_removed(
    processes: Processes, left: tuple[str, str] | None
) -> None:
    processes.pid_file.write_text("42")
    if left:
        processes.alive(42, *left)
    assert "is gone" in processes.bash("drop_stale_pids")
    assert not processes.pid_file.exists()
    assert processes.bash("living_dockerd || echo none") == "none"


def test_the_pid_file_of_its_containerd_goes_too(processes: Processes) -> None:
    file = processes.run / "docker" / "containerd" / "containerd.pid"
    file.parent.mkdir(parents=True)
    file.write_text("43")
    processes.alive(43, "containerd")
    assert processes.bash("drop_stale_pids") == ""
    assert file.exists()
    (processes.proc / "43" / "status").write_text("Name:\tcontainerd\nState:\tZ (zombie)\n")
    assert "containerd that is gone" in processes.bash("drop_stale_pids")
    assert not file.exists()


def test_an_engine_named_by_the_caller_is_never_replaced(tmp_path: Path) -> None:
    """A DOCKER_HOST that does not answer is said so; nothing is installed or started."""
    environ = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    script = 'install_client() { return 1; }; REPO=/nowhere; ensure_engine || echo "left alone"'
    done = bash(script, "apt", "engine", environ=environ)
    assert done.stdout.strip() == "left alone"
