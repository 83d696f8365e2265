"""From the files that one rollout left to a trial's directory in a job."""

import logging
from pathlib import Path

from harbor.models.job.lock import TrialLock
from harbor.models.trajectories import Trajectory
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.result import TrialResult

from harbor_backend.jobs.layout import (
    LOGS,
    place_trajectory,
    raise_logs,
    show_logs,
    spread_artifacts,
    trajectories,
)
from harbor_backend.jobs.manifest import declared_artifacts, places, write_manifest
from harbor_backend.jobs.reading import read_file, read_object
from harbor_backend.jobs.results import trial_result
from harbor_backend.jobs.usage import calls_of
from harbor_backend.jobs.values import JobDescription, TrialEnd
from osmosis_ai.common.files import write_atomically
from osmosis_ai.rollout.trajectory.save import TRAJECTORY

logger = logging.getLogger(__name__)


def recorded_result(rollout: Path) -> TrialResult | None:
    """What Harbor recorded of a rollout's trial; ``None`` where it recorded nothing usable."""
    try:
        content = read_file(rollout / LOGS / "result.json")
        return None if content is None else TrialResult.model_validate_json(content)
    except (OSError, ValueError) as exc:
        logger.warning("Harbor's result in %s is not used: %s", rollout, exc)
        return None


def write_trial(
    where: Path,
    end: TrialEnd,
    about: JobDescription,
    config: TrialConfig,
    lock: TrialLock | None,
) -> TrialResult:
    """Lay out the rollout's files in ``where`` as a trial's, and write the trial's records.

    ``result.json`` comes last: a directory without it is an unfinished trial to Harbor.

    Raises:
        OSError, ValueError: it cannot be done.
    """
    recorded = recorded_result(where)
    calls = end.calls
    if calls is None:
        calls = calls_of(read_object(where / TRAJECTORY) or {})
    result = trial_result(recorded, end, about, config, calls)
    where.mkdir(parents=True, exist_ok=True)
    raise_logs(where)
    declared = declared_artifacts(end.task.path)
    spread_artifacts(where, places(declared))
    if recorded is not None and recorded.agent_execution is not None:
        write_manifest(where, declared)
    _set_aside_unusable(where)
    place_trajectory(where, keep_own=about.is_native)
    show_logs(where)
    if lock is not None:
        _write(where / "lock.json", lock.model_dump_json(indent=4, exclude_none=True))
    _write(where / "config.json", config.model_dump_json(indent=4, exclude_defaults=True))
    error, told = result.exception_info, where / "exception.txt"
    if error is not None and not told.exists():
        _write(told, f"{error.exception_type}: {error.exception_message}")
    # Token ids on a line each would make a large file several times as large.
    used = result.agent_result
    indent = 4 if used is None or used.rollout_details is None else None
    _write(where / "result.json", result.model_dump_json(indent=indent))
    return result


def _set_aside_unusable(trial: Path) -> None:
    """Rename what a sandbox wrote as a trajectory and is none: Harbor's tools fail at it."""
    for path in trajectories(trial):
        try:
            Trajectory.model_validate_json(read_file(path) or b"")
        except (OSError, ValueError) as exc:
            logger.warning("A trajectory in %s is not used: %s", trial, exc)
            path.replace(path.with_name(f"unusable-{TRAJECTORY}"))


def _write(path: Path, text: str) -> None:
    write_atomically(path, f"{text}\n")
