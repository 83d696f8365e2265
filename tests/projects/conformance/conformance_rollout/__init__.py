"""Workflows and graders that the conformance suite names by import string.

Each does one thing that a backend may get wrong. None depends on the process
that runs the suite: everything arrives through ``ctx``.
"""
