"""Names and labels by which sandboxes and images of the engine are known."""

import re

PREFIX = "osmosis"
# No rollout id can make a name of this form: container_name() joins with dashes.
KEPT_PREFIX = f"{PREFIX}_kept"

SANDBOX = "ai.osmosis.sandbox"
INSTANCE = "ai.osmosis.instance"
ROLLOUT = "ai.osmosis.rollout"
IMAGE = "ai.osmosis.image"
NAMESPACE = "ai.osmosis.namespace"
HOST = "ai.osmosis.host"


def container_name(session_id: str, unique: str) -> str:
    """Return a legal container name that a person can connect to its trial."""
    readable = re.sub(r"[^a-zA-Z0-9_.-]+", "-", session_id)[:80].strip("-.")
    return f"{PREFIX}-{readable}-{unique}"
