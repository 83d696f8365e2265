"""Where a rollout's files land on the host."""

import logging
import os
import time
from pathlib import Path

import tenacity

from osmosis_ai.common.identifiers import ensure_single_path_segment

logger = logging.getLogger(__name__)

ARTIFACT_ROOT_ENV = "_OSMOSIS_ROLLOUT_ARTIFACT_ROOT"
ARTIFACTS = "artifacts"
HEALTH_MARKER = ".osmosis-health-check"
_REPLACED = ".replaced"


def artifact_root() -> Path:
    """Return the directory under which every rollout has its own, absolute."""
    return Path(os.environ.get(ARTIFACT_ROOT_ENV) or "~/.osmosis").expanduser().absolute()


def rollout_dir(root: Path, rollout_id: str) -> Path:
    """Return ``<root>/<rollout_id>``; raises ``ValueError`` for an id that would leave it."""
    return root / ensure_single_path_segment(rollout_id)


def set_aside_previous(root: Path, rollout_id: str) -> None:
    """Move the files of an earlier rollout with the same id out of the way.

    Without it two rollouts that shared an id would mix their artifacts.
    """
    current = rollout_dir(root, rollout_id)
    if not os.path.lexists(current):
        return
    replaced = root / _REPLACED
    replaced.mkdir(parents=True, exist_ok=True)
    shortened = rollout_id.encode()[:200].decode(errors="ignore")  # names end at 255 bytes
    target = replaced / f"{shortened}.{time.time_ns()}"
    current.rename(target)
    logger.info("Rollout %s: files of an earlier rollout were moved to %s", rollout_id, target)


def provision_artifacts_dir(root: Path, rollout_id: str) -> Path | None:
    """Make ``<root>/<rollout_id>/artifacts`` and prove that it can be written.

    Returns ``None``, with one warning, when it cannot: artifacts never decide
    over a rollout. Blocks for at most two short retries.
    """
    try:
        return _provision(root, rollout_id)
    except OSError as exc:
        logger.warning("Rollout %s: no artifacts directory: %s", rollout_id, exc)
        return None


@tenacity.retry(
    retry=tenacity.retry_if_exception_type(OSError),
    stop=tenacity.stop_after_attempt(3),
    wait=tenacity.wait_exponential(multiplier=0.5, max=1),
    reraise=True,
)
def _provision(root: Path, rollout_id: str) -> Path:
    set_aside_previous(root, rollout_id)
    directory = rollout_dir(root, rollout_id)
    artifacts = directory / ARTIFACTS
    artifacts.mkdir(parents=True, exist_ok=True)
    (directory / HEALTH_MARKER).write_bytes(b"")
    return artifacts
