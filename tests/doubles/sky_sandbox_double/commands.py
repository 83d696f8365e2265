"""Commands in a sandbox, and its files, which commands read and write."""

import time
from typing import Any

from . import inside
from .containers import main_process
from .errors import SandboxConnectionError, SandboxError
from .faults import Fault, take

KILLED = 137
_CUT_SEC = 0.05


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
        self._name, self._argv, self._settings = name, argv, settings
        self._code: int | None = None

    def run(self) -> int:
        """Run the command to its end, or to its budget: that ends it with a non-zero exit."""
        if self._code is not None:
            return self._code
        budget: float = self._settings["budget"]
        began = time.monotonic()
        command = " ".join(self._argv)
        overrun = take(Fault.EXEC_OVERRUN, self._name, command)
        lost = take(Fault.EXEC_LOST, self._name, command)
        ended = inside.run(
            main_process(self._name),
            *(("sleep", "3600") if overrun else self._argv),
            workdir=self._settings["workdir"],
            env=self._settings["env"],
            budget=_CUT_SEC if overrun or lost else budget,
        )
        if lost:
            raise SandboxConnectionError(f"injected: the connection to {self._name} was lost")
        if overrun:
            time.sleep(max(0.0, budget - (time.monotonic() - began)) if budget < 60 else 0.0)
        self.stdout.data, self.stderr.data = ended.stdout, ended.stderr
        self._code = ended.code
        if time.monotonic() - began >= budget:
            self._code = ended.code or KILLED
        return self._code


def write(name: str, data: bytes, path: str) -> None:
    """Write a file as the container's user, into a directory that is there."""
    ended = inside.run(main_process(name), "sh", "-c", 'cat >"$1"', "sh", path, stdin=data)
    if ended.code != 0:
        raise SandboxError(f"{name}: {path} was not written: {ended.stderr.decode()}")


def read(name: str, path: str) -> bytes:
    """Read a file."""
    ended = inside.run(main_process(name), "cat", path)
    if ended.code != 0:
        raise SandboxError(f"{name}: {path} was not read: {ended.stderr.decode()}")
    return ended.stdout
