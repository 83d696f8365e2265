"""Documented import path of ``messages_from_trajectory``."""

from osmosis_ai.rollout.trajectory.back import messages_from_trajectory

__all__ = ["messages_from_trajectory"]
