"""Settings of garbage collection that hold while a server runs, and not after it."""

import gc
import resource
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


def test_as_many_files_may_be_open_as_the_system_lets_us() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, before[1]), before[1]))
        with tuned_process():
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(before[1], 65_536)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
