"""Finding and killing everything that a command started."""

import contextlib
import os
import signal
import time

_ROUNDS = 50
_QUIET_ROUNDS = 3


def end_tree(guard: int) -> None:
    """Kill every descendant of a guard process, then the guard.

    The guard adopts orphans of its tree, so detached processes are found too.
    """
    quiet = 0
    for _ in range(_ROUNDS):
        tree = descendants(guard)
        # A chain of short-lived forks can slip past one look at the process table.
        quiet = 0 if tree else quiet + 1
        if quiet == _QUIET_ROUNDS:
            break
        for pid in tree:  # stopped first, so that nothing forks while it is being killed
            _signal(pid, signal.SIGSTOP)
        for pid in tree:
            _signal(pid, signal.SIGKILL)
        time.sleep(0.002)
    _signal(guard, signal.SIGKILL)


def descendants(root: int) -> list[int]:
    """Return the living descendants of a process, children before grandchildren."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:  # it ended while we looked
            continue
        if fields[0] not in (b"Z", b"X"):
            children.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    frontier = [root]
    while frontier:
        frontier = [child for parent in frontier for child in children.get(parent, [])]
        found += frontier
    return found


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
