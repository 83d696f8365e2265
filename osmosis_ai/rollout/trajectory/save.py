"""Saving a rollout's trajectory and diagnostics, which never decides over the rollout."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmosis_ai.common.files import write_atomically
from osmosis_ai.rollout.artifacts import artifact_root as default_artifact_root
from osmosis_ai.rollout.artifacts import rollout_dir
from osmosis_ai.rollout.trajectory.document import convert_sample_to_trajectory
from osmosis_ai.rollout.trajectory.plain import dump_document
from osmosis_ai.rollout.trajectory.report import LlmCallMetrics, TrajectoryReport
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.json_safe import to_json_value

logger = logging.getLogger(__name__)

TRAJECTORY = "trajectory.json"
DIAGNOSTICS = "diagnostics.json"


@dataclass(frozen=True)
class SaveResult:
    """The saved ``trajectory.json``, or the reason why there is none."""

    path: Path | None = None
    reason: str | None = None


async def save_trajectory(
    *,
    rollout_id: str,
    result: ExecutionResult,
    request_label: str | None = None,
    request_metadata: Mapping[str, Any] | None = None,
    request_extra_fields: Mapping[str, Any] | None = None,
    report: TrajectoryReport | None = None,
    artifact_root: Path | str | None = None,
    diagnostics: Mapping[str, Any] | None = None,
    llm_calls: Sequence[LlmCallMetrics | Mapping[str, Any]] | None = None,
) -> SaveResult:
    """Write ``<artifact_root>/<rollout_id>/trajectory.json``, and ``diagnostics.json`` before it.

    Each file appears whole or not at all. Nothing is raised, and one line is
    logged. A result without a sample, or whose ``trajectory_messages`` is
    ``None``, has no trajectory; its diagnostics are written all the same.
    ``artifact_root`` defaults to what the environment says at this moment.
    """

    def save() -> SaveResult:
        root = default_artifact_root() if artifact_root is None else Path(artifact_root)
        directory = rollout_dir(root, rollout_id)
        problem = None
        if diagnostics is not None:
            problem = _try_diagnostics(directory, diagnostics)
        sample = result.sample
        if sample is None or sample.trajectory_messages is None:
            absent = "no sample" if sample is None else "trajectory_messages is None"
            return _skipped(rollout_id, absent, problem)
        document = convert_sample_to_trajectory(
            sample,
            rollout_id=rollout_id,
            request_label=request_label,
            request_metadata=request_metadata,
            request_extra_fields=request_extra_fields,
            report=report,
            llm_calls=llm_calls,
        )
        path = directory / TRAJECTORY
        write_atomically(path, dump_document(document.to_json_dict()))
        return _saved(rollout_id, path, problem)

    try:
        return await asyncio.to_thread(save)
    except Exception as exc:
        reason = f"{type(exc).__name__}: {exc}"
        logger.warning("Rollout %s: trajectory not saved: %s", rollout_id, reason)
        return SaveResult(reason=reason)


def _try_diagnostics(directory: Path, diagnostics: Mapping[str, Any]) -> str | None:
    """Write the diagnostics; returns what went wrong, so that the trajectory still gets saved."""
    try:
        write_atomically(
            directory / DIAGNOSTICS, dump_document(to_json_value(diagnostics), sort_keys=True)
        )
    except Exception as exc:
        return f"{DIAGNOSTICS} not written: {type(exc).__name__}: {exc}"
    return None


def _skipped(rollout_id: str, reason: str, problem: str | None) -> SaveResult:
    level = logging.WARNING if problem else logging.INFO
    text = f"{reason}; {problem}" if problem else reason
    logger.log(level, "Rollout %s: no trajectory to save: %s", rollout_id, text)
    return SaveResult(reason=text)


def _saved(rollout_id: str, path: Path, problem: str | None) -> SaveResult:
    if problem:
        logger.warning("Rollout %s: trajectory saved to %s, but %s", rollout_id, path, problem)
    else:
        logger.info("Rollout %s: trajectory saved to %s", rollout_id, path)
    return SaveResult(path=path, reason=problem)
