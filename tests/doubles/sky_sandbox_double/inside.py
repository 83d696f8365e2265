"""Running a command inside a container: what it takes over from there, how it is ended."""

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import joining
from .errors import SandboxError

_CHUNK = 1 << 20
_START_SEC = 10.0
_LEFT_OPEN_SEC = 2.0
"""How long what a command left behind may hold its outputs open; the engine's own limit."""
_ENDING_SEC = 0.2
_KILLED = 128 + signal.SIGKILL


class MainProcess:
    """A container's first process, held so that its id cannot come to mean another one.

    What it runs as, commands run as: user, groups, capabilities, environment, directory.
    They are in none of its control groups and under none of its filters of system calls.

    Raises:
        SandboxError: it has ended, or this process may not join a container.
    """

    def __init__(self, pid: int) -> None:
        if os.geteuid() != 0:
            raise SandboxError("the double needs root, to start commands inside containers")
        place = Path("/proc", str(pid))
        try:
            self.file = os.pidfd_open(pid)
            status = dict(
                line.split(":\t", 1) for line in (place / "status").read_text().splitlines()
            )
            variables = os.fsdecode((place / "environ").read_bytes()).split("\0")
            self.workdir = str((place / "cwd").readlink())
        except OSError as exc:
            raise SandboxError(f"the sandbox has ended: {exc}") from exc
        self.env = dict(pair.split("=", 1) for pair in variables if "=" in pair)
        self.rights = {
            "uid": int(status["Uid"].split()[0]),
            "gid": int(status["Gid"].split()[0]),
            "groups": [int(group) for group in status["Groups"].split()],
            "capabilities": int(status["CapBnd"], 16),
        }

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            os.close(self.file)

    def ended(self, wait_sec: float = 0.0) -> bool:
        """Whether it has ended, or does within ``wait_sec``."""
        poll = select.poll()
        poll.register(self.file, select.POLLIN)
        return bool(poll.poll(wait_sec * 1000))


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    stdout: bytes
    stderr: bytes


def run(
    main: MainProcess,
    *argv: str,
    workdir: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    budget: float | None = None,
) -> Ended:
    """Run a command to its end; after ``budget`` seconds it is killed with all that it started.

    Raises:
        SandboxError: the container has ended.
    """
    request = {
        "argv": argv,
        "workdir": workdir or main.workdir,
        "env": {**main.env, **(env or {})},
        **main.rights,
    }
    with contextlib.ExitStack() as stack:
        outputs = Outputs()
        stack.callback(outputs.close)
        with contextlib.ExitStack() as sent:
            files = [_memory(json.dumps(request).encode(), sent), main.file, _memory(stdin, sent)]
            _ask([*files, *(_pipe(name, outputs, sent) for name in ("out", "err", "report"))])
        if not outputs.wait(lambda: "report" not in outputs.open, budget):
            if outputs.wait(lambda: b"\n" in outputs.data["report"], _START_SEC):
                _kill(int(outputs.data["report"].split()[0]))
            outputs.wait(lambda: "report" not in outputs.open)
        outputs.wait(lambda: not outputs.open, _LEFT_OPEN_SEC)
    code = int(outputs.data["report"].split()[-1])
    if main.ended(_ENDING_SEC if code == _KILLED else 0.0):
        raise SandboxError("the sandbox has ended")
    return Ended(code, bytes(outputs.data["out"]), bytes(outputs.data["err"]))


class Outputs:
    """What a command and its starter write, by name: ``data``; ``open`` are those to be read."""

    def __init__(self) -> None:
        self.open: dict[str, int] = {}
        self.data: dict[str, bytearray] = {}

    def add(self, name: str, file: int) -> None:
        """Read a file too."""
        self.open[name], self.data[name] = file, bytearray()

    def wait(self, condition: Callable[[], bool], limit_sec: float | None = None) -> bool:
        """Read until a condition holds; returns whether it does within the limit."""
        deadline = None if limit_sec is None else time.monotonic() + limit_sec
        while not condition():
            left = None if deadline is None else (deadline - time.monotonic()) * 1000
            if left is not None and left <= 0:
                return False
            poll = select.poll()
            names = {file: name for name, file in self.open.items()}
            for file in names:
                poll.register(file, select.POLLIN)
            for file, _ in poll.poll(left):
                part = os.read(file, _CHUNK)
                self.data[names[file]] += part
                if not part:
                    os.close(self.open.pop(names[file]))
        return True

    def close(self) -> None:
        """Read no more."""
        while self.open:
            os.close(self.open.popitem()[1])


def _pipe(name: str, outputs: Outputs, sent: contextlib.ExitStack) -> int:
    read, write = os.pipe()
    outputs.add(name, read)
    sent.callback(os.close, write)
    return write


def _memory(data: bytes, sent: contextlib.ExitStack) -> int:
    """A file that holds ``data``, which a pipe might not."""
    file = os.memfd_create("sky-double")
    sent.callback(os.close, file)
    with open(file, "wb", closefd=False) as target:
        target.write(data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


_starting = threading.Lock()
_asking: list[socket.socket] = []


def _ask(files: list[int]) -> None:
    """Have a command started by the process that does so; its first time, start that."""
    with _starting:
        if not _asking:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                command = [sys.executable, "-I", "-S", joining.__file__, str(theirs.fileno())]
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,  # a command outlives an engine that is killed
                    pass_fds=[theirs.fileno()],
                    process_group=0,
                )
            _asking.append(ours)
            atexit.register(process.wait)
            atexit.register(ours.close)
    socket.send_fds(_asking[0], [b"."], files)


def _kill(pid: int) -> None:
    """Kill a command and all that it started, by their ids on this machine."""
    for each in _tree(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def _tree(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [root]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found if root > 1 else []
