"""Settings for a process whose main work is serving a gateway."""

import gc

_YOUNG = 10_000
"""Allocations between collections of the young. A call makes some hundred objects and
lasts for seconds, so with Python's own 700 nearly all of them would be promoted while
they live, and full collections would follow one another."""


def tune_process() -> None:
    """Make garbage collection cheap for an event loop with many calls in flight.

    What was imported so far is taken out of collections, which otherwise stop the loop
    for tens of milliseconds each to look at it again. Call it once, when everything is
    imported and before the first rollout; it concerns the whole process, so a library
    must not.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 50)
