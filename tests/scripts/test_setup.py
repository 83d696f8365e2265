"""What set-up decides about Docker on made-up machines, and how a whole run of it ends."""

import http.server
import shutil
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.scripts.shell import REPO, bash, executable

# Functions that stand for the machine: who we are, what it runs, and what apt would do.
MACHINE = """
apt_usable() { [ "$ROOT" = yes ] && [ "$APT" = yes ]; }
apt_update() { [ "$APT" = yes ]; }
apt_install() { echo "apt: $*"; }
apt_add_suite() { echo "suite: $1 like $2"; }
apt_drop_suite() { echo "dropped: $1"; }
apt_candidate() { case " $PACKAGES " in *" $1 "*) echo 1 ;; esac; }
os_field() { case "$1" in ID) echo "$OS" ;; *) echo "$CODENAME" ;; esac; }
command() { case " $COMMANDS " in *" $2 "*) echo "/usr/bin/$2" ;; *) return 1 ;; esac; }
id() { [ "$ROOT" = yes ] && echo 0 || echo 1000; }
"""
DEBIAN = {"ROOT": "yes", "APT": "yes", "OS": "debian", "CODENAME": "trixie"}
BOOKWORM = {**DEBIAN, "CODENAME": "bookworm"}
NOT_ROOT = {**DEBIAN, "ROOT": "no"}
FEDORA = {**DEBIAN, "APT": "no", "OS": "fedora"}
NOTHING = {"PACKAGES": "", "COMMANDS": "", "DOCKER_HOST": ""}


def decided(script: str, *parts: str, **machine: str) -> tuple[int, str, str]:
    """The exit code, the lines that say what was done, and the warning."""
    done = bash(MACHINE + script, *parts, environ={**NOTHING, **machine})
    lines = [line for line in done.stdout.splitlines() if not line.startswith("setup: ")]
    return done.returncode, "; ".join(lines), done.stderr.removeprefix("setup: ").strip()


# machine, what is installed, a part of what is said when nothing is
ENGINES: dict[str, tuple[dict[str, str], str, str]] = {
    "Debian 13": ({**DEBIAN, "PACKAGES": "docker-cli"}, "apt: docker.io docker-cli", ""),
    "Debian 12": (BOOKWORM, "apt: docker.io", ""),
    "not root": (NOT_ROOT, "", "this is not root on Debian: install Docker Engine 20.10"),
    "another system": (FEDORA, "", "this is not root on Debian: install Docker Engine 20.10"),
    "another system with apt": (
        {**DEBIAN, "OS": "ubuntu"},
        "",
        "this is not root on Debian: install Docker Engine 20.10",
    ),
}


@pytest.mark.parametrize("case", ENGINES)
def test_an_engine_is_installed_on_debian_by_root(case: str) -> None:
    machine, installed, said = ENGINES[case]
    code, did, warning = decided("\ninstall_engine", "engine", **machine)
    assert (code, did) == (0 if installed else 1, installed)
    assert said in warning


CLIENTS: dict[str, tuple[dict[str, str], str, str]] = {
    "Debian 13": ({**DEBIAN, "PACKAGES": "docker-cli"}, "apt: docker-cli", ""),
    "Debian 12 has it with an engine only": (
        BOOKWORM,
        "suite: trixie like bookworm; apt: docker-cli/trixie",
        "",
    ),
    "not root": (NOT_ROOT, "", "install the Docker CLI"),
    "another system": (FEDORA, "", "install the Docker CLI"),
}


@pytest.mark.parametrize("case", CLIENTS)
def test_a_client_comes_without_an_engine(case: str) -> None:
    machine, installed, said = CLIENTS[case]
    code, did, warning = decided("\ninstall_client", "engine", **machine)
    assert (code, did) == (0 if installed else 1, installed)
    assert said in warning


# commands that are there, whether an engine answers, machine, exit code, what is done, what is said
WHICH_ENGINE: dict[str, tuple[str, str, dict[str, str], int, str, str]] = {
    "one answers": ("docker", "yes", DEBIAN, 0, "", ""),
    "one answers, and nothing drives it": ("", "yes", DEBIAN, 0, "client", ""),
    "one is named, and nothing drives it": (
        "",
        "yes",
        {**DEBIAN, "DOCKER_HOST": "tcp://e:1"},
        0,
        "client; client",
        "",
    ),
    "the one that is named does not answer": (
        "docker",
        "no",
        {**DEBIAN, "DOCKER_HOST": "tcp://e:1"},
        1,
        "",
        "the engine at DOCKER_HOST=tcp://e:1 does not answer: start it, or unset DOCKER_HOST",
    ),
    "one is there and does not answer this user": (
        "docker dockerd",
        "no",
        NOT_ROOT,
        1,
        "",
        "add the user to the group docker",
    ),
    "none is there, for a user": ("", "no", NOT_ROOT, 1, "engine", "add the user to the group"),
}


@pytest.mark.parametrize("case", WHICH_ENGINE)
def test_which_engine_is_used(case: str) -> None:
    commands, answers, machine, code, did, said = WHICH_ENGINE[case]
    script = """
engine_answers() { [ "$ANSWERS" = yes ]; }
living_dockerd() { return 1; }
install_client() { echo client; }
install_engine() { echo engine; }
docker() { echo 27; }
ensure_engine
"""
    result = decided(script, "engine", **{**machine, "COMMANDS": commands, "ANSWERS": answers})
    assert result[:2] == (code, did)
    assert said in result[2]


# machine, whether a mirror has trixie, exit code, what is done, what is said
PLUGINS: dict[str, tuple[dict[str, str], str, int, str, str]] = {
    "Debian 13": (
        {**DEBIAN, "PACKAGES": "docker-compose docker-buildx", "MAJOR": "2"},
        "yes",
        0,
        "apt: docker-compose docker-buildx",
        "",
    ),
    "a release that has the old one alone": (
        {**DEBIAN, "PACKAGES": "docker-compose docker-buildx"},
        "yes",
        1,
        "",
        "no source of this machine has Docker Compose v2",
    ),
    "those of the engine's own source": (
        {**BOOKWORM, "PACKAGES": "docker-compose-plugin"},
        "yes",
        0,
        "apt: docker-compose-plugin docker-buildx-plugin",
        "",
    ),
    "Debian 12 takes trixie's": (
        BOOKWORM,
        "yes",
        0,
        "suite: trixie like bookworm; apt: docker-compose/trixie docker-buildx/trixie",
        "",
    ),
    "a mirror without trixie is left as it was": (
        BOOKWORM,
        "no",
        1,
        "suite: trixie like bookworm; dropped: trixie",
        "",
    ),
    "not root": (NOT_ROOT, "yes", 1, "", "install both as Docker CLI plug-ins"),
    "another system": (FEDORA, "yes", 1, "", "install both as Docker CLI plug-ins"),
}


@pytest.mark.parametrize("case", PLUGINS)
def test_where_compose_and_buildx_come_from(case: str) -> None:
    machine, mirror, code, did, said = PLUGINS[case]
    script = """
updated=
apt_update() { [ -z "$updated" ] && updated=1 || [ "$MIRROR" = yes ]; }
installed=
apt_install() { echo "apt: $*"; installed=1; }
compose_ready() { [ -n "$installed" ]; }
version_major() { printf %s "${MAJOR:-1}"; }
docker() { echo 2; }
ensure_compose
"""
    result = decided(script, "compose", **machine, MIRROR=mirror)
    assert result[:2] == (code, did)
    assert said in result[2]


def test_plugins_that_do_not_answer_after_all_are_said() -> None:
    script = "\ncompose_ready() { return 1; }\nensure_compose"
    machine = {**BOOKWORM, "PACKAGES": "docker-compose-plugin", "COMMANDS": "docker"}
    code, _, warning = decided(script, "compose", **machine)
    assert code == 1
    assert "is another Docker client first on PATH?" in warning


@contextmanager
def pinged(socket: Path, status: int) -> Iterator[None]:
    """Something that answers a ping on a unix socket."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/_ping" else 404)
            self.end_headers()

        def address_string(self) -> str:
            return "unix"

        def log_message(self, *_: object) -> None:
            pass

    with socketserver.UnixStreamServer(str(socket), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


# what DOCKER_HOST says ({} is a directory), the socket that is there, its answer; whether it counts
PINGS: dict[str, tuple[str, str | None, int, bool]] = {
    "the ordinary socket": ("", "docker.sock", 200, True),
    "a socket that is named": ("unix://{}/own.sock", "own.sock", 200, True),
    "one that is not there": ("unix://{}/own.sock", "docker.sock", 200, False),
    "none": ("", None, 200, False),
    "something else that answers": ("", "docker.sock", 500, False),
    "an address that needs the client": ("tcp://127.0.0.1:1", "docker.sock", 200, False),
    "over SSH too": ("ssh://somewhere", "docker.sock", 200, False),
}


@pytest.mark.parametrize("case", PINGS)
def test_an_engine_is_asked_without_a_client(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, socket, status, answers = PINGS[case]
    environ = {
        "DOCKER_HOST": host.format("."),
        "RUN_DIR": ".",
        "PYTHON": sys.executable,
        "COMMANDS": "",
    }
    monkeypatch.chdir(tmp_path)  # a socket's path has to be short
    script = f"{MACHINE}\nengine_answers && echo yes || echo no"
    if socket is None:
        done = bash(script, "engine", environ=environ)
    else:
        with pinged(Path(socket), status):
            done = bash(script, "engine", environ=environ)
    assert done.stdout.strip() == ("yes" if answers else "no")


def checkout(root: Path, *, engine: bool, fetched: int, debootstrap: bool) -> Path:
    """A made-up checkout of setup.sh, on a machine with or without these."""
    script = root / "scripts" / "setup.sh"
    (root / "scripts" / "lib").mkdir(parents=True)
    shutil.copy(REPO / "scripts" / "setup.sh", script)
    shutil.copy(REPO / "scripts" / "lib" / "say.sh", root / "scripts" / "lib" / "say.sh")
    made_up = f"""
ensure_venv() {{ :; }}
ensure_engine() {{ return {int(not engine)}; }}
ensure_compose() {{ :; }}
apt_usable() {{ [ -n "{debootstrap or ""}" ]; }}
apt_install() {{ echo "apt: $*"; }}
command() {{ return 1; }}
"""
    for part in ("apt", "python", "uv", "venv", "engine", "compose"):
        (root / "scripts" / "lib" / f"{part}.sh").write_text(made_up)
    python = f'#!/bin/sh\necho "images: $3 $4"\n[ "$3" != fetch ] || exit {fetched}\n'
    executable(root / ".venv" / "bin" / "python", python)
    return script


FETCHED, NO_REGISTRY, BROKEN = 0, 3, 1
# options, engine, what fetching the image comes to, whether it could be built;
# exit code, what is kept about Docker, what is done
RUNS: dict[str, tuple[list[str], bool, int, bool, int, str | None, list[str]]] = {
    "everything is there": ([], True, FETCHED, False, 0, "ready", ["images: fetch"]),
    "no registry: it is built": (
        [],
        True,
        NO_REGISTRY,
        True,
        0,
        "ready",
        ["images: fetch", "apt: mmdebstrap", "images: build --no-registry"],
    ),
    "no registry, and it cannot be built": (
        [],
        True,
        NO_REGISTRY,
        False,
        0,
        "absent",
        ["images: fetch"],
    ),
    "a registry that fails": ([], True, BROKEN, True, 0, "absent", ["images: fetch"]),
    "no engine": ([], False, FETCHED, True, 0, "absent", []),
    "no engine, and one is required": (["--require-docker"], False, FETCHED, True, 1, "absent", []),
    "an engine, and one is required": (
        ["--require-docker"],
        True,
        FETCHED,
        True,
        0,
        "ready",
        ["images: fetch"],
    ),
    "Docker is left alone": (["--no-docker"], True, FETCHED, True, 0, None, []),
}


@pytest.mark.parametrize("case", RUNS)
def test_a_machine_is_set_up_with_docker_or_without(case: str, tmp_path: Path) -> None:
    options, engine, fetched, builds, code, kept, did = RUNS[case]
    script = checkout(tmp_path, engine=engine, fetched=fetched, debootstrap=builds)
    done = subprocess.run(
        ["/bin/bash", str(script), *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    stamp = tmp_path / ".venv" / ".osmosis-docker"
    assert (stamp.read_text().strip() if stamp.exists() else None) == kept
    lines = [line.removeprefix("setup: ").strip() for line in done.stdout.splitlines()]
    assert lines == did
    assert ("going on without Docker" in done.stderr) is (kept == "absent" and code == 0)
    assert ("Docker is required here" in done.stderr) is (code == 1)
