"""Starting commands, each under a guard process that adopts its descendants."""

import ctypes
import errno
import os
import signal
import time
from typing import Any, NoReturn

from . import warm
from .frames import RESULT, RESULT_FD, STDERR, STDOUT
from .signals import END_COMMAND, unshield
from .surroundings import Surroundings
from .users import User, find_user

PR_SET_CHILD_SUBREAPER = 36
_MAX_FD = 4096
_STANDARD = 3

type Pipe = tuple[int, int]


class Job:
    """One running command: its guard, the pipes to it, its limits and its end."""

    def __init__(self, channel: int, request: dict[str, Any], given: Surroundings) -> None:
        self.channel = channel
        self.pending = bytearray()
        self.input_ended = False
        self.code: int | None = None
        self.timed_out = False
        self._spares = bool(request.get("spare"))
        self.drain_until: float | None = None
        timeout = request.get("timeout")
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.left = {
            STDOUT: request["limit"],
            STDERR: request["limit"],
            RESULT: request["result_limit"],
        }
        self.dropped = {STDOUT: 0, STDERR: 0, RESULT: 0}
        user = find_user(request.get("user"))
        kinds = [STDOUT, STDERR, *([RESULT] if request["result_limit"] else [])]
        streams = {kind: os.pipe() for kind in kinds}
        stdin = os.pipe() if request.get("stdin") else (os.open(os.devnull, os.O_RDONLY), -1)
        if request.get("runner") and not warm.load():
            request["runner"] = None
        self.guard = os.fork()
        if self.guard == 0:
            try:
                _guard(request, given, user, stdin[0], streams)
            finally:
                os._exit(127)
        os.close(stdin[0])
        self.stdin: int | None = None if stdin[1] < 0 else stdin[1]
        self.pipes: dict[int, int] = {}
        for kind, (read, write) in streams.items():
            os.close(write)
            self.pipes[read] = kind
        for fd in [*self.pipes, *([self.stdin] if self.stdin is not None else [])]:
            os.set_blocking(fd, False)

    def spare_tree(self) -> bool:
        """End the command, and let live what it started, if that was asked; whether it was."""
        if self._spares and self.code is None:
            os.kill(self.guard, END_COMMAND)
        return self._spares

    def take(self, kind: int, data: bytes) -> bytes:
        """Return what of ``data`` still fits the stream's limit; the rest is only counted."""
        passed = data[: self.left[kind]]
        self.left[kind] -= len(passed)
        self.dropped[kind] += len(data) - len(passed)
        return passed

    def feed(self) -> bool:
        """Write pending input; returns whether the pipe is full and must be polled."""
        if self.stdin is None:
            return False
        try:
            while self.pending:
                written = os.write(self.stdin, self.pending)
                del self.pending[:written]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self.pending.clear()
            self.input_ended = True
        return False


def _guard(
    request: dict[str, Any],
    given: Surroundings,
    user: User | None,
    stdin: int,
    streams: dict[int, Pipe],
) -> NoReturn:
    """Adopt the command's tree, and end with the command's own code.

    What the command leaves in the background is then handed on to the
    supervisor and lives as long as the sandbox, as under a container engine.
    """
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    command = os.fork()
    if command == 0:
        _become(request, given, user, stdin, streams)
    signal.signal(END_COMMAND, lambda *_: os.kill(command, signal.SIGKILL))
    os.closerange(_STANDARD, _MAX_FD)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == command:
            os._exit(exit_code(status))


def _become(
    request: dict[str, Any],
    given: Surroundings,
    user: User | None,
    stdin: int,
    streams: dict[int, Pipe],
) -> NoReturn:
    """Be the command, in just what an engine would give it."""
    argv = request["argv"]
    try:
        os.setsid()
        os.dup2(streams[STDOUT][1], 1)
        os.dup2(streams[STDERR][1], 2)
        os.dup2(stdin, 0)
        if RESULT in streams:
            os.dup2(streams[RESULT][1], RESULT_FD)
        os.closerange(_STANDARD + (RESULT in streams), _MAX_FD)
        unshield()
        own = request.get("env") or {}
        environment = {**given.environment, **own}
        # As root: an engine lets a user be where it may not go by itself.
        os.chdir(request.get("cwd") or given.cwd)
        if user is not None:
            os.setgroups(user.groups)
            os.setgid(user.gid)
            os.setuid(user.uid)
            if not given.names_home and "HOME" not in own:
                environment["HOME"] = user.home
        if request.get("runner"):
            warm.run(request["runner"], environment)
        if argv[0] == "bash" and not _on_path("bash", environment.get("PATH", os.defpath)):
            argv = ["sh", *argv[1:]]
        os.execvpe(argv[0], argv, environment)
    except OSError as exc:
        text = f"osmosis: {exc.filename or argv[0]}: {os.strerror(exc.errno or 0)}\n"
        os.write(2, text.encode(errors="replace"))
        os._exit(127 if exc.errno == errno.ENOENT else 126)


def _on_path(name: str, path: str) -> bool:
    return any(os.access(f"{folder}/{name}", os.X_OK) for folder in path.split(":"))


def exit_code(status: int) -> int:
    """Return a shell's view of a wait status: a signal is 128 plus its number."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
