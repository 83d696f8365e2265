"""Settings for a process whose main work is serving a gateway."""

import gc
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_YOUNG = 5_000
"""Allocations between collections of the young. A call makes some hundred objects and
lasts for seconds, so with Python's own 700 nearly all of them would be promoted while
they live, and full collections would follow one another."""

_OLDER = (2, 1_000) if sys.version_info < (3, 14) else (20, 50)
"""When the older generations follow. An object is looked at once in the middle one however
often that is collected; seldom means a stop of a tenth of a second for thousands of
rollouts. Full collections come after as many allocations as before. Python 3.14 collects
the old in steps, and takes the first number for their size."""

_SWITCH_SEC = 0.0005
"""How long a thread may keep the interpreter while the loop wants it back. The loop gives it
up with every system call, and threads that write files would keep it for Python's own 5 ms."""


_MOST_FILES = 65_536


def tune_process() -> None:
    """Make collections and threads cheap for an event loop with many calls in flight.

    The soft limit of open files is raised to the hard one, at most to 65,536: what all
    rollouts may hold of connections goes by it.

    What was imported so far is taken out of collections, which otherwise stop the loop
    for tens of milliseconds each to look at it again. Call it once, when everything is
    imported and before the first rollout; it concerns the whole process, so a library
    must not.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, *_OLDER)
    sys.setswitchinterval(_SWITCH_SEC)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextmanager
def tuned_process() -> Iterator[None]:
    """``tune_process`` while the block runs, and as before once the last such block ended.

    Only the limit of open files stays raised.
    For a server that may not be all of its process: nothing stays out of collections.
    """
    global _tuned, _before
    if not _tuned:
        _before = gc.get_threshold(), sys.getswitchinterval()
        tune_process()
    _tuned += 1
    try:
        yield
    finally:
        _tuned -= 1
        if not _tuned:
            thresholds, switch_sec = _before
            gc.set_threshold(*thresholds)
            gc.unfreeze()
            sys.setswitchinterval(switch_sec)


_tuned = 0
_before = gc.get_threshold(), sys.getswitchinterval()
