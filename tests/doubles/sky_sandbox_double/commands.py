"""Commands in a container: started by the engine, killed from outside when they overrun."""

import contextlib
import os
import shlex
import signal
import threading
import time
from pathlib import Path
from typing import Any

import docker.errors

from .containers import engine, find
from .errors import SandboxConnectionError, SandboxError
from .faults import Fault, take

KILLED = 137
_START_SEC = 10.0


class Stream:
    """What a command wrote to one of its outputs, once it has ended."""

    def __init__(self) -> None:
        self.data = b""

    def read(self) -> str:
        """All of it."""
        return self.data.decode(errors="replace")


class Process:
    """The handle of a command."""

    def __init__(self, name: str, argv: tuple[str, ...], settings: dict[str, Any]) -> None:
        self.stdout, self.stderr = Stream(), Stream()
        self._name, self._settings = name, settings
        self._command = shlex.join(argv)
        self._code: int | None = None

    def run(self) -> int:
        """Run the command to its end, or to its budget: that ends it with a non-zero exit."""
        if self._code is not None:
            return self._code
        budget: float = self._settings["budget"]
        began = time.monotonic()
        overrun = take(Fault.EXEC_OVERRUN, self._name, self._command)
        lost = take(Fault.EXEC_LOST, self._name, self._command)
        container = find(self._name)
        try:
            made = engine().api.exec_create(
                container.id,
                ["sh", "-c", self._command],
                workdir=self._settings["workdir"],
                environment=self._settings["env"],
            )
            watch = threading.Timer(0.05 if overrun or lost else budget, _kill, [made["Id"]])
            watch.daemon = True
            watch.start()
            try:
                output = engine().api.exec_start(made["Id"], demux=True)
            finally:
                watch.cancel()
            code: int | None = engine().api.exec_inspect(made["Id"])["ExitCode"]
        except docker.errors.APIError as exc:
            raise SandboxError(f"{self._name}: {exc}") from exc
        if lost:
            raise SandboxConnectionError(f"injected: the connection to {self._name} was lost")
        if overrun:
            time.sleep(max(0.0, budget - (time.monotonic() - began)) if budget < 60 else 0.0)
        self.stdout.data, self.stderr.data = (part or b"" for part in output)
        if code is None or time.monotonic() - began >= budget:
            code = code or KILLED
        self._code = code
        return code


def write(name: str, data: bytes, path: str) -> None:
    """Write a file as the container's user, into a directory that is there."""
    container = find(name)
    made = engine().api.exec_create(
        container.id, ["sh", "-c", 'head -c "$2" > "$1"', "sh", path, str(len(data))], stdin=True
    )
    stream = engine().api.exec_start(made["Id"], socket=True)
    connection = getattr(stream, "_sock", stream)
    errors = b""
    with contextlib.closing(connection), contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(data)
        while part := connection.recv(65536):
            errors += part
    code = engine().api.exec_inspect(made["Id"])["ExitCode"]
    if code != 0:
        raise SandboxError(f"{name}: {path} was not written: {errors[8:].decode(errors='replace')}")


def read(name: str, path: str) -> bytes:
    """Read a file."""
    container = find(name)
    made = engine().api.exec_create(container.id, ["cat", path])
    output, errors = engine().api.exec_start(made["Id"], demux=True)
    if engine().api.exec_inspect(made["Id"])["ExitCode"] != 0:
        raise SandboxError(f"{name}: {path} was not read: {(errors or b'').decode()}")
    return output or b""


def _kill(exec_id: str) -> None:
    """Kill a command and all that it started, by their ids on this machine."""
    with contextlib.suppress(docker.errors.APIError, OSError):
        deadline = time.monotonic() + _START_SEC
        while not (state := engine().api.exec_inspect(exec_id))["Pid"]:
            if time.monotonic() > deadline:  # it never began
                return
            time.sleep(0.01)
        for pid in _tree(state["Pid"]) if state["Running"] else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


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
