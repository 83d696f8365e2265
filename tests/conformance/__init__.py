"""One suite of behaviours that every execution backend must show alike.

``cases.py`` holds the table, ``tables/lives.py`` what is watched while a rollout
lives, ``harness.py`` what a backend must offer to be tested. ``test_<backend>.py``
runs them on one backend; those with sandboxes share ``sandboxed.py``.
"""
