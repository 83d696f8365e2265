"""Commands in a container: started by the engine, killed from outside when they overrun."""

import contextlib
import os
import shlex
import signal
import struct
import threading
import time
from pathlib import Path
from typing import Any

import docker.errors
import requests

from .containers import engine, find
from .errors import SandboxConnectionError, SandboxError
from .faults import Fault, take

KILLED = 137
_START_SEC = 10.0
_FRAME = struct.Struct(">BxxxL")
_NOTHING = "exec sleep 3600"


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
                ["sh", "-c", _NOTHING if overrun else self._command],
                workdir=self._settings["workdir"],
                environment=self._settings["env"],
            )
            watch = threading.Timer(0.05 if overrun or lost else budget, _kill, [made["Id"]])
            watch.daemon = True
            watch.start()
            try:
                output = _outputs(made["Id"])
            finally:
                watch.cancel()
            code: int | None = engine().api.exec_inspect(made["Id"])["ExitCode"]
        except (docker.errors.APIError, requests.RequestException) as exc:
            raise SandboxError(f"{self._name}: {exc}") from exc
        if lost:
            raise SandboxConnectionError(f"injected: the connection to {self._name} was lost")
        if overrun:
            time.sleep(max(0.0, budget - (time.monotonic() - began)) if budget < 60 else 0.0)
        self.stdout.data, self.stderr.data = output
        if code is None or time.monotonic() - began >= budget:
            code = code or KILLED
        self._code = code
        return code


def write(name: str, data: bytes, path: str) -> None:
    """Write a file as the container's user, into a directory that is there."""
    container = find(name)
    # What cannot be written is read nevertheless: the engine waits for that.
    script = 'head -c "$2" >"$1" || { head -c "$2" >/dev/null; exit 1; }'
    made = engine().api.exec_create(
        container.id, ["sh", "-c", script, "sh", path, str(len(data))], stdin=True
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
    output, errors = _outputs(made["Id"])
    if engine().api.exec_inspect(made["Id"])["ExitCode"] != 0:
        raise SandboxError(f"{name}: {path} was not read: {errors.decode()}")
    return output


def _outputs(exec_id: str) -> tuple[bytes, bytes]:
    """Start a command, and return what it wrote to its two outputs once it has ended.

    As a plain request: the engine's SDK asks for the bare connection instead, and loses
    what came in one packet with the answer's head.
    """
    api = engine().api
    url = f"{api.base_url}/v{api.api_version}/exec/{exec_id}/start"
    answer = api.post(url, json={"Detach": False, "Tty": False}, timeout=None)
    answer.raise_for_status()
    frames, outputs = memoryview(answer.content), (bytearray(), bytearray(), bytearray())
    while frames:
        kind, length = _FRAME.unpack_from(frames)
        outputs[kind].extend(frames[_FRAME.size : _FRAME.size + length])
        frames = frames[_FRAME.size + length :]
    return bytes(outputs[1]), bytes(outputs[2])


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
