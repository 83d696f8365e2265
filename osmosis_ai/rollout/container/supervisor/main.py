"""Starting the supervisor: ``main.py`` is given the path of the host's socket."""

import ctypes
import os
import signal
import socket
import sys

from .jobs import PR_SET_CHILD_SUBREAPER
from .loop import Supervisor

_PR_SET_DUMPABLE = 4


def main() -> None:
    """Connect to the host and serve it; the sandbox ends when this returns."""
    os.umask(0o022)
    # The kernel keeps default actions from a sandbox's first process; Python's handler it runs.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # The tools that an agent runs must not reach into this process.
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    Supervisor(connection).serve()
