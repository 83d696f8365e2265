"""A real sshd of this machine, on a high port with keys of its own: a host to reach over SSH."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

START_SEC = 20
_PRIVILEGE_SEPARATION = Path("/run/sshd")
_PROGRAM = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class Sshd:
    """One daemon. ``die`` ends it as a machine that is switched off does: with every session."""

    def __init__(self, folder: Path, alias: str) -> None:
        if _PROGRAM is None:
            raise RuntimeError("these tests need an sshd: install the package openssh-server")
        self.alias = alias
        self._program = _PROGRAM
        self._folder = folder / alias
        self._folder.mkdir()
        self._user = pwd.getpwuid(os.getuid()).pw_name
        self._process: subprocess.Popen[str] | None = None
        self.port = _free_port()
        for name in ("host", "user"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f"]
            subprocess.run([*command, str(self._folder / name)], check=True)
        if os.getuid() == 0:
            _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)

    def start(self, *options: str) -> None:
        """Start it, with further lines of configuration, and wait until it listens."""
        config = self._folder / "sshd_config"
        lines = [
            *options,
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self._folder / 'host'}",
            f"AuthorizedKeysFile {self._folder / 'user.pub'}",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "PermitRootLogin prohibit-password",
            "PidFile none",
        ]
        config.write_text("".join(f"{line}\n" for line in lines))
        self._process = subprocess.Popen(
            [self._program, "-D", "-e", "-f", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = []
        for line in self._process.stderr or ():
            said.append(line)
            if line.startswith("Server listening"):
                break
        else:
            raise RuntimeError(f"sshd did not start: {''.join(said)}")

    def die(self) -> None:
        """Kill it and all its sessions."""
        if self._process is None:
            return
        for pid in [*_descendants(self._process.pid), self._process.pid]:
            os.kill(pid, signal.SIGKILL)
        self._process.communicate()
        self._process = None

    def client_config(self) -> str:
        """What ssh is to know of it; the shape of what SkyPilot writes for a node."""
        return (
            f"# Added by sky (use `sky stop/down {self.alias}` to remove)\n"
            f"Host {self.alias}\n"
            "  HostName 127.0.0.1\n"
            f"  User {self._user}\n"
            f"  IdentityFile {self._folder / 'user'}\n"
            "  IdentitiesOnly yes\n"
            "  StrictHostKeyChecking no\n"
            "  UserKnownHostsFile=/dev/null\n"
            "  GlobalKnownHostsFile=/dev/null\n"
            f"  Port {self.port}\n\n"
        )


def _descendants(pid: int) -> Iterator[int]:
    """Every living process below one, leaves first."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            yield from _descendants(child)
            yield child


def _free_port() -> int:
    """A port below those that a kernel gives away by itself."""
    for port in range(20_000 + os.getpid() % 5000, 32_000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port on 127.0.0.1 after {time.monotonic()} s")
