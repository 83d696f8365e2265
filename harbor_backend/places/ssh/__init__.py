"""Hosts of a cluster, reached over SSH, whose engines run a Docker place's containers.

``hosts`` is what a Docker place knows of them; ``fleet`` gives each trial a slot
on one; ``host`` keeps one connected and healthy; ``link`` is one connection to
it, made of an ssh process (``ssh``), a shell at its other end (``shell``) and a
tunnelled engine (``engine``).
"""
