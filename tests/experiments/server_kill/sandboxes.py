"""Containers that killed servers may have left behind."""

import subprocess


def left_behind() -> set[str]:
    """Ids of containers, running or not, that carry a label of ours."""
    from harbor_backend.places import labels

    done = subprocess.run(
        ["docker", "ps", "-aq", "--no-trunc", "--filter", f"label={labels.INSTANCE}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())
