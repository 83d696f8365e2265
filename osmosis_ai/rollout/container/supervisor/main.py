"""Starting the supervisor: ``main()`` finds its arguments behind the program's name."""

import ctypes
import os
import socket
import sys

from .jobs import PR_SET_CHILD_SUBREAPER
from .loop import Supervisor
from .signals import shield
from .surroundings import surroundings
from .title import set_title
from .tree import end_everything

TITLE = "osmosis-supervisor"
BESIDE, NAMES_HOME = "beside", "names-home"

_PR_SET_DUMPABLE = 4


def main() -> None:
    """Connect to the host and serve it; the sandbox ends when this returns.

    Arguments: the path of the host's socket, then ``beside`` where the image's own program is
    the sandbox's first process, and ``names-home`` where its environment sets ``HOME``.
    """
    path, *facts = sys.argv[1:]
    given = surroundings(names_home=NAMES_HOME in facts)
    is_beside = BESIDE in facts
    os.umask(0o022)
    shield()
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    set_title(TITLE)
    # The tools that an agent runs must not reach into this process.
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    try:
        Supervisor(connection, given, is_alone=is_beside or os.getpid() == 1).serve()
    finally:
        if is_beside:
            end_everything()
