"""Saved trajectories: a sample as an ATIF document, and back."""

from osmosis_ai.rollout.trajectory.document import convert_sample_to_trajectory
from osmosis_ai.rollout.trajectory.report import TrajectoryReport, report_from_response
from osmosis_ai.rollout.trajectory.save import SaveResult, save_trajectory

__all__ = [
    "SaveResult",
    "TrajectoryReport",
    "convert_sample_to_trajectory",
    "report_from_response",
    "save_trajectory",
]
