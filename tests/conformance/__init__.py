"""One suite of behaviours that every execution backend must show alike.

``cases.py`` holds the table, ``harness.py`` what a backend must offer to be
tested, ``test_<backend>.py`` runs the table on one backend.
"""
