"""Finding and killing everything that a command started."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator

_ROUNDS = 50
_QUIET_ROUNDS = 3


def end_tree(guard: int, *, is_alone: bool = False) -> None:
    """Kill every descendant of a guard process, then the guard.

    The guard adopts orphans of its tree, so detached processes are found too.
    ``is_alone``: this process sees those of one sandbox only.
    """
    quiet = 0
    with _stillness() if is_alone else contextlib.nullcontext():
        for _ in range(_ROUNDS):
            tree = descendants(guard)
            # One that is just ending hides its children from a look at the process table.
            quiet = 0 if tree else quiet + 1
            if quiet == _QUIET_ROUNDS:
                break
            for pid in tree:  # stopped first, so that nothing forks while it is being killed
                _signal(pid, signal.SIGSTOP)
            for pid in tree:
                _signal(pid, signal.SIGKILL)
            time.sleep(0.002)
        _signal(guard, signal.SIGKILL)


@contextlib.contextmanager
def _stillness() -> Iterator[None]:
    """Hold every other process of the sandbox still, so that nothing forks out of sight.

    The kernel signals all of them but the first in one step that no fork can pass by,
    however fast a chain of short-lived processes runs. Only a supervisor may ask for it
    that is told to be in a sandbox: anywhere else "all" could reach beyond.
    """
    stopped = {pid for pid, _, state in _processes() if state == b"T"}
    with contextlib.suppress(ProcessLookupError):  # there is no other process
        os.kill(-1, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid, _, _ in list(_processes()):
            if pid != 1 and pid not in stopped:
                _signal(pid, signal.SIGCONT)


def end_everything() -> None:
    """Kill every other process of this sandbox, and ask the first, which none can kill, to end."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    _signal(1, signal.SIGTERM)


def descendants(root: int) -> list[int]:
    """Return the living descendants of a process, children before grandchildren."""
    children: dict[int, list[int]] = {}
    living = set()
    for pid, parent, state in _processes():
        children.setdefault(parent, []).append(pid)
        if state not in (b"Z", b"X"):
            living.add(pid)
    found: list[int] = []
    frontier = [root]
    while frontier:
        frontier = [child for parent in frontier for child in children.get(parent, [])]
        found += frontier
    return [pid for pid in found if pid in living]


def _processes() -> Iterator[tuple[int, int, bytes]]:
    """Yield pid, parent and state of each process."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:  # it ended while we looked
            continue
        yield int(name), int(fields[1]), fields[0]


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
