"""The process that starts commands inside containers: ``python -I -S joining.py SOCKET``.

The engine starts a command by three programs, which costs as much as a small
workflow. A real platform's work is done elsewhere, so here a process of one
thread joins the container's namespaces and becomes the command.

Each message on the socket brings five files: the request, the container's main
process, and the command's standard input, output and error; and a sixth, to
which a child writes the command's process id and, when it ended, its exit code.
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

FILES = 6
_PR_CAPBSET_DROP = 24
_CAPABILITIES = int(Path("/proc/sys/kernel/cap_last_cap").read_text()) + 1
_libc = ctypes.CDLL(None, use_errno=True)


def main(listening: socket.socket) -> None:
    """Start what is asked for, until nobody can ask any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    while True:
        _, files, _, _ = socket.recv_fds(listening, 1, FILES)
        if len(files) < FILES:
            return
        for file in files:  # not for what a command leaves behind, which would hold them open
            os.set_inheritable(file, False)
        if os.fork() == 0:
            listening.close()
            _child(*files)
        for file in files:
            os.close(file)


def _child(request: int, process: int, *files: int) -> None:
    """Join a container and report on the command, which has to be a child to be in its ids."""
    code = 126
    *standard, report = files
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with open(request, "rb") as asking:
            asked = json.load(asking)
        os.setns(
            process,
            os.CLONE_NEWNS | os.CLONE_NEWPID | os.CLONE_NEWNET | os.CLONE_NEWUTS | os.CLONE_NEWIPC,
        )
        command = os.fork()
        if command == 0:
            _become(asked, standard)
        os.write(report, b"%d\n" % command)
        for file in standard:
            os.close(file)
        code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    except OSError as exc:
        _say(standard[2], exc)
    finally:
        with contextlib.suppress(OSError):  # whoever asked is gone
            os.write(report, b"%d\n" % (code if code >= 0 else 128 - code))
        os._exit(0)


def _become(asked: dict[str, Any], standard: list[int]) -> None:
    try:
        for target, file in enumerate(standard):
            os.dup2(file, target)
        os.setsid()
        os.chdir(asked["workdir"])
        _drop(asked["capabilities"])
        os.setgroups(asked["groups"])
        os.setgid(asked["gid"])
        os.setuid(asked["uid"])
        for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored, signal.SIG_DFL)
        os.umask(0o022)
        os.execvpe(asked["argv"][0], asked["argv"], asked["env"])
    except OSError as exc:
        _say(2, exc)
    finally:
        os._exit(127)


def _drop(kept: int) -> None:
    """Have no capability that the container's own processes cannot have."""
    for number in range(_CAPABILITIES):
        if not kept >> number & 1 and _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0):
            raise OSError(ctypes.get_errno(), f"capability {number} is kept")


def _say(file: int, exc: OSError) -> None:
    with contextlib.suppress(OSError):
        os.write(file, f"the command cannot be started: {exc}\n".encode())


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
