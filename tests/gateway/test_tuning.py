"""Settings of garbage collection that hold while a server runs, and not after it."""

import gc
import sys

from osmosis_ai.gateway.tuning import tuned_process


def test_what_was_set_is_set_again() -> None:
    before = gc.get_threshold(), sys.getswitchinterval()
    with tuned_process():
        assert gc.get_threshold() != before[0]
        assert sys.getswitchinterval() < before[1]
        assert gc.get_freeze_count() > 10_000
        with tuned_process():
            pass
        assert gc.get_freeze_count() > 10_000
    assert (gc.get_threshold(), sys.getswitchinterval()) == before
    assert gc.get_freeze_count() == 0
