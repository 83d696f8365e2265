"""Trials in Docker on the hosts of a cluster, over SSH.

``environment`` is what Harbor drives; ``fleet`` gives each trial a place on a
host; ``host`` keeps one host connected and healthy; ``link`` is one connection to
it, made of an ssh process (``ssh``), a shell at its other end (``shell``) and a
tunnelled engine (``engine``).
"""
