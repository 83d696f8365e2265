"""How much of a sandbox is brought out at once, and how much of it is read then.

docs/sandboxes.md holds the table; texts have theirs in ``osmosis_ai.common.texts``.
"""

MAX_DOWNLOAD_BYTES = 2 * 1024**3
MAX_DOWNLOAD_ENTRIES = 200_000
MAX_DOWNLOAD_SEC = 600
MAX_REWARD_BYTES = 64 * 1024
MAX_MANIFEST_BYTES = 4 * 1024**2
"""Harbor's list of the artifacts that it collected."""
MAX_TRAJECTORY_BYTES = 64 * 1024**2
