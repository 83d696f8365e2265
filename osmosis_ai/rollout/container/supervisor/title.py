"""The name of a process among the processes of its sandbox."""

import contextlib
import ctypes

_PR_SET_NAME = 15
# Of /proc/<pid>/stat, counted from the field behind the name.
_ARGUMENTS_START, _ARGUMENTS_END = 45, 46


def set_title(title: str) -> None:
    """Call this process, and what is forked of it, ``title`` in ``ps`` and for ``pkill``.

    A task that ends every Python of its sandbox means its own.
    """
    name = title.encode()
    ctypes.CDLL(None).prctl(_PR_SET_NAME, ctypes.c_char_p(name), 0, 0, 0)
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[_ARGUMENTS_START]), int(fields[_ARGUMENTS_END])
        if start and end - start > len(name):
            ctypes.memset(start, 0, end - start)
            ctypes.memmove(start, name, len(name))
