"""Tests on a real SkyPilot Platform: collected only where somebody asks for them."""

import os

LIVE = "OSMOSIS_SKYPILOT_LIVE"

if not os.environ.get(LIVE):
    collect_ignore_glob = ["test_*.py"]
