"""Names of trials: legal for files, containers and compose projects, unique, recognisable."""

import re
import uuid


def trial_name(rollout_id: str) -> str:
    """Return a fresh trial name that a person can connect to its rollout."""
    readable = re.sub(r"[^a-z0-9]+", "-", rollout_id.lower()).strip("-")[:32] or "rollout"
    return f"{readable}-{uuid.uuid4().hex[:10]}"
